import { bool, closed, commonPoolKeys, int, listOf, str } from "@nodeyard/driver";
import { isolationKeys } from "../../../slivers/index.ts";

const label = closed(
  {
    name: str("A top-level label."),
    "backing-label": str("Label of the backing node, by which it is asked for."),
    "max-parallel-jobs": int({ description: "Slots of one backing node.", default: 1 }),
    "grace-time": int({ description: "An empty backing node is kept this long.", default: 60, unit: "s" }),
    "min-retention-time": int({
      description: "A backing node is kept at least this long after it became ready.",
      default: 0,
      unit: "s",
    }),
    "max-age": int({
      description: "From this age on a backing node takes no more slots, and goes once it is empty.",
      default: "no limit",
      unit: "s",
    }),
    "host-key-checking": bool({
      description: "True: each slot is scanned before it is handed out; a failure retires its backing node.",
      default: "the pool's; true with `isolation: sliver`",
    }),
    ...isolationKeys,
  },
  ["name", "backing-label"],
);

const pool = closed(
  {
    ...commonPoolKeys,
    "host-key-checking": bool({ description: "Default of the pool's labels.", default: false }),
    labels: listOf(label, "What the pool cuts out of backing nodes."),
  },
  ["name", "labels"],
);

/** The validator's schema (docs/contract/config.md, "Metastatic keys"). */
export const schema = closed(
  {
    "boot-timeout": int({
      description: "For a slot to answer, where it is scanned.",
      default: 120,
      unit: "s",
    }),
    "launch-timeout": int({
      description: "From the start of a launch to a slot, the backing node's own launch included.",
      default: 3600,
      unit: "s",
    }),
    "launch-retries": int({ description: "Attempts per node in all.", default: 3 }),
    pools: listOf(pool, "What the provider offers, in pools."),
  },
  ["pools"],
);
