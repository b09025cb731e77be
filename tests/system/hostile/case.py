# SPDX-License-Identifier: Apache-2.0
"""A row of the tables of hostile cases."""
import dataclasses


@dataclasses.dataclass
class Case:
    """What is sent, and what comes of it: `error` is (code, a part of the text) of the ERROR frame, or None where it must be taken.
    `written` and `lost` (events by reason): what the ledger of the source says at the end, where that is looked at."""
    name: str
    data: object
    error: tuple = None
    written: int = None
    lost: dict = None
