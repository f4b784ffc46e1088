import { closed, commonPoolKeys, int, listOf, str } from "@nodeyard/driver";

const label = closed(
  {
    name: str("A top-level label."),
    greeting: str({ description: "What a board says to whoever connects.", default: "the label's name" }),
  },
  ["name"],
);

const pool = closed({ ...commonPoolKeys, labels: listOf(label, "What the pool offers.") });

export const schema = closed(
  {
    folder: str("Absolute path of the folder that holds the boards."),
    "max-boards": int({ description: "Boards at once in the folder.", default: "no limit" }),
    "boot-timeout": int({ description: "For a board to answer once it runs.", default: 10, unit: "s" }),
    "launch-timeout": int({ description: "From the start of a launch to a board.", default: 30, unit: "s" }),
    "launch-retries": int({ description: "Attempts per node in all.", default: 3 }),
    pools: listOf(pool, "Groups of labels."),
  },
  ["folder"],
);
