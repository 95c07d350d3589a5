//! Jobs that come again: each by its schedule, never beside itself, tried again where that helps, and ended in time.
