"""The base classes that docs/frameworks.md uses, as far as it uses them."""


class Message:
    def __init__(self, role, text):
        self.role, self.text = role, text

    def to_dict(self):
        return {"role": self.role, "text": self.text}

    @classmethod
    def from_dict(cls, data):
        return cls(data["role"], data["text"])


class HistoryProvider:
    def __init__(self, source_id, *, load_messages=True):
        self.source_id = source_id
        self.load_messages = load_messages
