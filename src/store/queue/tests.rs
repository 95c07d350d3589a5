//! What is of this queue alone. What every queue promises is in `tests/queue`.
