"""Windows on a grid under the default trigger, by aggregates: assign, split by lateness, fire."""
