"""Export trained networks to ONNX, with an example of how to load them."""

import logging
import warnings
from collections.abc import Sequence

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import Network


def as_onnx(network: Network, outputs: Sequence[str] = ("scores",)) -> bytes:
    """Return the network as an ONNX file that maps `inputs` (any number of examples) to its outputs, by these names."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():  # torch's exporter warns about its internals
        warnings.simplefilter("ignore")
        try:
            program = torch.onnx.export(
                network.module.eval(),
                (network.inputs,),
                input_names=["inputs"],
                output_names=list(outputs),
                dynamic_shapes=({0: torch.export.Dim("examples")},),
                dynamo=True,
                verbose=False,
            )
        except Exception as error:  # unusual modules make the exporter raise all kinds of errors
            raise FedcsoError(f"the network can't be exported to ONNX: {str(error).splitlines()[0]}") from error
    assert program is not None
    onnx: bytes = program.model_proto.SerializeToString()
    return onnx


def loading_example(file: str, preparation: bool, models: Sequence[str] = ()) -> str:
    """Return LOADING.md: example code that loads a model, and the list of exported models."""
    lines: Sequence[str] = (
        [
            "import onnxruntime",
            "from fedcso.datasets.preparation import Preparation, read_table",
            "rows = Preparation.from_json(open('preparation.json').read()).apply(read_table('new.csv'))",
            f"session = onnxruntime.InferenceSession({file!r})",
            "(scores,) = session.run(None, {'inputs': rows.numpy()})  # high: positive",
        ]
        if preparation
        else [
            "import numpy, onnxruntime",
            f"session = onnxruntime.InferenceSession({file!r})",
            "shape = [2 if isinstance(n, str) else n for n in session.get_inputs()[0].shape]",
            "inputs = numpy.zeros(shape, dtype=numpy.float32)  # your examples, scaled as in training",
            "(scores,) = session.run(None, {'inputs': inputs})  # high: positive",
        ]
    )
    code = "\n".join(lines)
    text = f"# Loading the model\n\n`pip install onnxruntime`, then:\n\n```python\n{code}\n```\n"
    return text + ("\n# Which models\n\n" + "".join(f"- {model}\n" for model in models) if models else "")
