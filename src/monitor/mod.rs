//! What is expected to happen regularly, what was heard of it, and how healthy that makes it. Pure: check-ins and a moment in, health and the
//! check-ins that the system adds by itself out.
