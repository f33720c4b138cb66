"""Flower's simulation engine, with 16 nodes on Ray workers of one core each."""

import sys
from typing import Any

import torch
import torch.nn.functional as F
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from benchmarks.peers.work import BATCH, CLIENTS, EXAMPLES, LOCAL_STEPS, RATE, Clock, pictures
from fedcso.models.small_cnn import SmallCNN

client_app = ClientApp()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Train for five steps on the node's examples."""
    torch.set_num_threads(1)
    number = int(context.node_config["partition-id"])
    inputs, labels = (part[number] for part in pictures())
    network = SmallCNN()
    network.load_state_dict(message.content.array_records["x"].to_torch_state_dict())
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    order = torch.randperm(EXAMPLES)
    for step in range(LOCAL_STEPS):
        chosen = order[step * BATCH : (step + 1) * BATCH]
        optimizer.zero_grad()
        F.cross_entropy(network(inputs[chosen]), labels[chosen]).backward()
        optimizer.step()
    content = RecordDict({"x": ArrayRecord(network.state_dict()), "n": MetricRecord({"examples": EXAMPLES})})
    return Message(content=content, reply_to=message)


def serve(rounds: int, clock: Clock) -> ServerApp:
    """Return a server that runs FedAvg with messages."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        x: dict[str, Any] = SmallCNN().state_dict()
        while len(nodes := list(grid.get_node_ids())) < CLIENTS:
            pass
        for _ in range(rounds):
            content = RecordDict({"x": ArrayRecord(x)})
            messages = [Message(content=content, message_type="train", dst_node_id=node) for node in nodes]
            replies = [
                reply.content.array_records["x"].to_torch_state_dict() for reply in grid.send_and_receive(messages)
            ]
            x = {name: torch.stack([reply[name] for reply in replies]).mean(0) for name in x}
            clock.tick()

    return app


def main(rounds: int) -> None:
    clock = Clock()
    run_simulation(
        serve(rounds, clock), client_app, CLIENTS, backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    )
    clock.report()


if __name__ == "__main__":
    main(int(sys.argv[1]))
