//! Who may do what on a hub.
