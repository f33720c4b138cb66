"""One method, one file, named as in its paper; and the table of all of them."""

from fedcso.algorithms.acc_fcsg_m import AccFCSGM
from fedcso.algorithms.bsgd import BSGD
from fedcso.algorithms.bspiderboost import BSpiderBoost
from fedcso.algorithms.coda import CODA
from fedcso.algorithms.fcsg import FCSG
from fedcso.algorithms.fcsg_m import FCSGM
from fedcso.algorithms.fedavg import FedAvg
from fedcso.algorithms.local_scgd import LocalSCGD
from fedcso.algorithms.local_scgdm import LocalSCGDM
from fedcso.algorithms.moml import MOML
from fedcso.algorithms.scaffold import Scaffold
from fedcso.algorithms.soap import SOAP
from fedcso.algorithms.sox import SOX
from fedcso.algorithms.stem import STEM
from fedcso.core.algorithm import Algorithm

ALGORITHMS: dict[str, type[Algorithm]] = {
    "FCSG": FCSG,
    "FCSG-M": FCSGM,
    "Acc-FCSG-M": AccFCSGM,
    "FedAvg": FedAvg,
    "BSGD": BSGD,
    "BSpiderBoost": BSpiderBoost,
    "Local-SCGD": LocalSCGD,
    "Local-SCGDM": LocalSCGDM,
    "SCAFFOLD": Scaffold,
    "STEM": STEM,
    "SOX": SOX,
    "MOML": MOML,
    "SOAP": SOAP,
    "CODA+": CODA,
}
"""Every method by the name it has in its paper. A new one is a file and a row here."""

__all__ = [
    "ALGORITHMS",
    "BSGD",
    "CODA",
    "FCSG",
    "FCSGM",
    "MOML",
    "SOAP",
    "SOX",
    "STEM",
    "AccFCSGM",
    "BSpiderBoost",
    "FedAvg",
    "LocalSCGD",
    "LocalSCGDM",
    "Scaffold",
]
