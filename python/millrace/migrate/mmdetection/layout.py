"""The paths of equivalent keys in MMDetection 2.x and 3.x."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.migrate.translation import Translation


@dataclass(frozen=True)
class Layout:
    is_new: bool  # 3.x
    train_cfg: str  # of the model
    test_cfg: str
    train_set: str
    val_set: str
    test_set: str

    @classmethod
    def of(cls, t: Translation) -> Layout:
        is_new = bool(t.look("train_dataloader"))
        return cls(
            is_new=is_new,
            train_cfg="model.train_cfg" if t.look("model.train_cfg") else "train_cfg",
            test_cfg="model.test_cfg" if t.look("model.test_cfg") else "test_cfg",
            train_set="train_dataloader.dataset" if is_new else "data.train",
            val_set="val_dataloader.dataset" if is_new else "data.val",
            test_set="test_dataloader.dataset" if is_new else "data.test",
        )
