"""The site's part: import torch, and send back what arrived."""

import torch
from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Return x as it was sent."""
    x = torch.from_numpy(message.content.array_records["x"]["x"].numpy())
    return Message(RecordDict({"x": ArrayRecord({"x": x})}), reply_to=message)
