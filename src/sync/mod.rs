//! What runs elsewhere have to tell a server: records are sent as their journal has them, and believed only as far as their chain holds.
