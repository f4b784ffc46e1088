import { closed, int, listOf, mapOf, numberish, str, toNumber } from "@nodeyard/driver";
import { z } from "zod";

const isTime = (value: unknown) => {
  const both = Array.isArray(value) ? value : [value, value];
  const [least, most] = both.map(toNumber);
  return both.length === 2 && least !== undefined && most !== undefined && least >= 0 && most >= least;
};

const time = (description: string) =>
  z
    .custom(isTime, { error: "must be milliseconds, or a list of the least and the most of them: [20, 80]" })
    .meta({ type: ["number", "array"], items: { type: "number" }, description, default: 0, unit: "ms" });

const share = (what: string) =>
  z
    .custom((value) => (toNumber(value) ?? -1) >= 0 && (toNumber(value) ?? 2) <= 1, {
      error: "must be a share from 0 to 1",
    })
    .meta({ type: "number", description: `Share of ${what} that fail.`, default: 0 });

const count = (what: string) =>
  int({ description: `How many from the start: ${what}. -1: always.`, default: 0 });

/** The optional `fake:` mapping of a provider: how its cloud behaves. */
export const knobsSchema = closed(
  {
    seed: int({ description: "The same seed gives the same cloud.", default: 1 }),
    quota: closed(
      {
        instances: int({ description: "Machines; -1: no limit.", default: 20 }),
        cores: int({ description: "Cores; -1: no limit.", default: 100 }),
        ram: int({ description: "Memory; -1: no limit.", default: 1_000_000, unit: "MiB" }),
      },
      [],
      "What the credential may use.",
    ),
    "availability-zones": listOf(str(), { description: "Zones of the cloud.", default: "az1, az2" }),
    capacity: mapOf(int(), "Machines that a zone has room for, by zone."),
    latency: closed(
      {
        create: time("From the call to the answer."),
        boot: time("From the answer to a machine that is up."),
        delete: time("Of a delete."),
        read: time("Of looking and listing."),
      },
      [],
      "How long calls take.",
    ),
    errors: closed(
      {
        create: share("creates"),
        delete: share("deletes"),
        find: share("look-ups"),
        list: share("listings"),
      },
      [],
      "Failures by chance.",
    ),
    faults: closed(
      {
        "create-fails": count("creates that fail, nothing made"),
        "create-fails-with-external-id": count("creates that fail though the machine was made"),
        "never-active": count("machines that never come up"),
        "ends-in-error": count("machines that end in ERROR"),
        "delete-fails": count("deletes that fail"),
        "delete-leaves-record": count("deletes after which the machine stays listed as DELETED"),
      },
      [],
      "Failures by count.",
    ),
    "consistency-delay": numberish({
      description: "For how long listings may show the state before a change.",
      default: 0,
      unit: "ms",
    }),
    images: closed(
      {
        folder: str("Folder that keeps them."),
        formats: listOf(str(), { description: "Formats taken, the preferred one first.", default: "qcow2" }),
      },
      ["folder"],
      "Uploads are real copies in a folder; absent: the cloud takes no images.",
    ),
    journal: str("File that keeps the cloud beyond the process."),
  },
  [],
  "How the fake cloud behaves; Nodeyard's own.",
);
