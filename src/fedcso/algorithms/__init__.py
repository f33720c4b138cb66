"""Federated methods, one per module, named as in their papers, and the table of all of them."""

from typing import TYPE_CHECKING, Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.registry import Registry

ALGORITHMS: Registry[type[Algorithm]] = Registry(
    "algorithm",
    __name__,
    {
        "FCSG": "fcsg:FCSG",
        "FCSG-M": "fcsg_m:FCSGM",
        "Acc-FCSG-M": "acc_fcsg_m:AccFCSGM",
        "FedAvg": "fedavg:FedAvg",
        "BSGD": "bsgd:BSGD",
        "BSpiderBoost": "bspiderboost:BSpiderBoost",
        "Local-SCGD": "local_scgd:LocalSCGD",
        "Local-SCGDM": "local_scgdm:LocalSCGDM",
        "SCAFFOLD": "scaffold:Scaffold",
        "STEM": "stem:STEM",
        "SOX": "sox:SOX",
        "MOML": "moml:MOML",
        "SOAP": "soap:SOAP",
        "MOAP": "moap:MOAP",
        "MSVR": "msvr:MSVR",
        "SCENT": "scent:SCENT",
        "CODA+": "coda:CODA",
        "CODASCA": "codasca:CODASCA",
        "Per-FedAvg": "per_fedavg:PerFedAvg",
        "FedMeta": "fedmeta:FedMeta",
        "Reptile": "reptile:Reptile",
        "ComFedL": "comfedl:ComFedL",
        "FGDRO-KL": "fgdro_kl:FGDROKL",
    },
)
"""Methods by the names they have in their papers. To add one, write its module and a row here."""

if TYPE_CHECKING:  # type checkers can't read the table; to them, a class that is missing here is of type Any
    from fedcso.algorithms.acc_fcsg_m import AccFCSGM as AccFCSGM
    from fedcso.algorithms.bsgd import BSGD as BSGD
    from fedcso.algorithms.bspiderboost import BSpiderBoost as BSpiderBoost
    from fedcso.algorithms.coda import CODA as CODA
    from fedcso.algorithms.codasca import CODASCA as CODASCA
    from fedcso.algorithms.comfedl import ComFedL as ComFedL
    from fedcso.algorithms.fcsg import FCSG as FCSG
    from fedcso.algorithms.fcsg_m import FCSGM as FCSGM
    from fedcso.algorithms.fedavg import FedAvg as FedAvg
    from fedcso.algorithms.fedmeta import FedMeta as FedMeta
    from fedcso.algorithms.fgdro_kl import FGDROKL as FGDROKL
    from fedcso.algorithms.local_scgd import LocalSCGD as LocalSCGD
    from fedcso.algorithms.local_scgdm import LocalSCGDM as LocalSCGDM
    from fedcso.algorithms.moap import MOAP as MOAP
    from fedcso.algorithms.moml import MOML as MOML
    from fedcso.algorithms.msvr import MSVR as MSVR
    from fedcso.algorithms.per_fedavg import PerFedAvg as PerFedAvg
    from fedcso.algorithms.reptile import Reptile as Reptile
    from fedcso.algorithms.scaffold import Scaffold as Scaffold
    from fedcso.algorithms.scent import SCENT as SCENT
    from fedcso.algorithms.soap import SOAP as SOAP
    from fedcso.algorithms.sox import SOX as SOX
    from fedcso.algorithms.stem import STEM as STEM


def __getattr__(name: str) -> Any:
    return ALGORITHMS.package_attribute(name)
