"""Federated methods, one per module, named as in their papers, and the table of all of them."""

from typing import TYPE_CHECKING, Any

from fedcso.core.registry import Registry

ALGORITHMS: "Registry[type[Algorithm]]" = Registry.grouped(
    "algorithm",
    __name__,
    {
        "the paper's methods": {
            "FCSG": "fcsg:FCSG",
            "FCSG-M": "fcsg_m:FCSGM",
            "Acc-FCSG-M": "acc_fcsg_m:AccFCSGM",
        },
        "momentum and variance reduction": {
            "MimeLite": "mimelite:MimeLite",
            "MIME": "mime:MIME",
            "Fed-GLOMO": "fed_glomo:FedGLOMO",
            "PAGE": "page:PAGE",
        },
        "wrappers around any method": {
            "ServerRate": "server_rate:ServerRate",
            "FedAvgM": "fedavgm:FedAvgM",
            "FedAdagrad": "fedadagrad:FedAdagrad",
            "FedAdam": "fedadam:FedAdam",
            "FedYogi": "fedyogi:FedYogi",
            "FedProx": "fedprox:FedProx",
            "FAFED": "fafed:FAFED",
        },
        "ordinary federated learning": {
            "FedAvg": "fedavg:FedAvg",
            "SCAFFOLD": "scaffold:Scaffold",
            "STEM": "stem:STEM",
        },
        "one tracked value for all ξ": {
            "Local-SCGD": "local_scgd:LocalSCGD",
            "Local-SCGDM": "local_scgdm:LocalSCGDM",
        },
        "one tracked value for each ξ": {
            "SOX": "sox:SOX",
            "SOAP": "soap:SOAP",
            "MOAP": "moap:MOAP",
            "MSVR": "msvr:MSVR",
            "SCENT": "scent:SCENT",
            "FeDXL2": "fedxl:FeDXL2",
        },
        "meta-learning": {
            "MOML": "moml:MOML",
            "Per-FedAvg": "per_fedavg:PerFedAvg",
            "FedMeta": "fedmeta:FedMeta",
            "Reptile": "reptile:Reptile",
        },
        "min-max problems": {
            "CODA+": "coda:CODA",
            "CODASCA": "codasca:CODASCA",
        },
        "robust federations": {
            "ComFedL": "comfedl:ComFedL",
            "FGDRO-KL": "fgdro_kl:FGDROKL",
        },
        "without a server": {
            "SLATE": "slate:SLATE",
            "SLATE-M": "slate_m:SLATEM",
        },
        "one machine": {
            "BSGD": "bsgd:BSGD",
            "BSpiderBoost": "bspiderboost:BSpiderBoost",
        },
    },
)
"""Methods by the names they have in their papers, in groups. To add one, write its module and a row here."""

MAIN = ("FCSG", "FCSG-M", "Acc-FCSG-M")
"""The methods to run if none are named and the problem recommends none."""

if TYPE_CHECKING:  # type checkers can't read the table; to them, a class that is missing here is of type Any
    from fedcso.algorithms.acc_fcsg_m import AccFCSGM as AccFCSGM
    from fedcso.algorithms.bsgd import BSGD as BSGD
    from fedcso.algorithms.bspiderboost import BSpiderBoost as BSpiderBoost
    from fedcso.algorithms.coda import CODA as CODA
    from fedcso.algorithms.codasca import CODASCA as CODASCA
    from fedcso.algorithms.comfedl import ComFedL as ComFedL
    from fedcso.algorithms.fafed import FAFED as FAFED
    from fedcso.algorithms.fcsg import FCSG as FCSG
    from fedcso.algorithms.fcsg_m import FCSGM as FCSGM
    from fedcso.algorithms.fed_glomo import FedGLOMO as FedGLOMO
    from fedcso.algorithms.fedadagrad import FedAdagrad as FedAdagrad
    from fedcso.algorithms.fedadam import FedAdam as FedAdam
    from fedcso.algorithms.fedavg import FedAvg as FedAvg
    from fedcso.algorithms.fedavgm import FedAvgM as FedAvgM
    from fedcso.algorithms.fedmeta import FedMeta as FedMeta
    from fedcso.algorithms.fedprox import FedProx as FedProx
    from fedcso.algorithms.fedxl import FeDXL2 as FeDXL2
    from fedcso.algorithms.fedyogi import FedYogi as FedYogi
    from fedcso.algorithms.fgdro_kl import FGDROKL as FGDROKL
    from fedcso.algorithms.local_scgd import LocalSCGD as LocalSCGD
    from fedcso.algorithms.local_scgdm import LocalSCGDM as LocalSCGDM
    from fedcso.algorithms.mime import MIME as MIME
    from fedcso.algorithms.mimelite import MimeLite as MimeLite
    from fedcso.algorithms.moap import MOAP as MOAP
    from fedcso.algorithms.moml import MOML as MOML
    from fedcso.algorithms.msvr import MSVR as MSVR
    from fedcso.algorithms.page import PAGE as PAGE
    from fedcso.algorithms.per_fedavg import PerFedAvg as PerFedAvg
    from fedcso.algorithms.reptile import Reptile as Reptile
    from fedcso.algorithms.scaffold import Scaffold as Scaffold
    from fedcso.algorithms.scent import SCENT as SCENT
    from fedcso.algorithms.server_rate import ServerRate as ServerRate
    from fedcso.algorithms.slate import SLATE as SLATE
    from fedcso.algorithms.slate_m import SLATEM as SLATEM
    from fedcso.algorithms.soap import SOAP as SOAP
    from fedcso.algorithms.sox import SOX as SOX
    from fedcso.algorithms.stem import STEM as STEM
    from fedcso.core.algorithm import Algorithm


def owners() -> dict[str, list[str]]:
    """Return, for each hyper-parameter, the methods of the table that have it; no method is imported for it."""
    found: dict[str, list[str]] = {}
    for name in ALGORITHMS:
        for parameter in ALGORITHMS.definition(name).fields:
            found.setdefault(parameter, []).append(name)
    return found


def __getattr__(name: str) -> Any:
    return ALGORITHMS.package_attribute(name)
