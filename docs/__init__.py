"""What makes the generated parts of the documentation: `api`, `architecture`, and `rooms`, which both of them read."""
