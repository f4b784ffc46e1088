import { defined } from "@nodeyard/runtime";
import {
  IMAGE,
  INSTANTIATIONS,
  MAX_AMOUNT,
  type Malformed,
  NAME,
  type Resource,
  type Rspec,
  sshKey,
} from "@nodeyard/sliver-protocol";
import { WrongDocumentError } from "../errors.ts";
import type { Delivery } from "./deliver.ts";
import type { WireProfile } from "./profiles.ts";
import { type Incoming, NO_VERSION } from "./record.ts";

type Struct = Readonly<Record<string, unknown>>;

/**
 * Parses a `GetSlivers` reply or the content of an old ticket (docs/contract/slivers.md, "GetSlivers"). A malformed sliver is reported and
 * does not affect the others. Throws WrongDocumentError when the value cannot be a reply at all.
 */
export function readGetSlivers(value: unknown, node: string, profile: WireProfile): Delivery {
  // Until January 2007 PLC sent an array with one struct per node.
  const reply = Array.isArray(value) ? value.find((one) => isFor(one, node)) : value;
  if (!isStruct(reply)) throw new WrongDocumentError(`the reply has no struct for node ${node}`);
  if (!isFor(reply, node))
    throw new WrongDocumentError(`the reply is for node ${String(reply.node_id)}, this is ${node}`);
  if (!isTime(reply.timestamp) || !Array.isArray(reply.slivers))
    throw new WrongDocumentError("the reply has no timestamp or no slivers");
  const number = reply.timestamp;
  const scripts = initscripts(reply.initscripts);
  // The sliver of that name is still made as any other.
  const common = isUnshaped(reply.slivers) ? UNSHAPED : {};
  const records: Incoming[] = [];
  const malformed: Malformed[] = [];
  for (const sliver of reply.slivers) {
    const result = readSliver(sliver, number, scripts, profile);
    if ("reason" in result) malformed.push(result);
    else records.push({ ...result, rspec: { ...result.rspec, ...common } });
  }
  return { version: { ...NO_VERSION, number }, digest: "", records, malformed };
}

/** What all slivers get where nothing of the network is to be limited: their caps end at the machine's link, and no day is counted. */
const UNSHAPED: Partial<Rspec> = {
  netCap: MAX_AMOUNT,
  net2Cap: MAX_AMOUNT,
  netDay: 0,
  netDayThreshold: 0,
  net2Day: 0,
  net2DayThreshold: 0,
};

/** A slice `PREFIX_default` overrides what holds for all: a `net_max_rate` of -1 turns the shaping of the network off. */
function isUnshaped(slivers: readonly unknown[]): boolean {
  const one = slivers.find((value) => isStruct(value) && /^[a-z0-9]+_default$/.test(String(value.name)));
  return isStruct(one) && Number(attributesOf(one.attributes).get("net_max_rate")) === -1;
}

/** Parses one sliver, or says what is wrong with it. */
function readSliver(
  value: unknown,
  timestamp: number,
  scripts: ReadonlyMap<string, string>,
  profile: WireProfile,
): Incoming | Malformed {
  if (!isStruct(value) || typeof value.name !== "string" || !NAME.test(value.name))
    return { reason: `${JSON.stringify(isStruct(value) ? value.name : value)} is not a name of a sliver` };
  const { name } = value;
  // With its name, so that the sliver that is there is not ended for a malformed entry (`deliverFull`).
  const bad = (reason: string): Malformed => ({ name, reason });
  const attributes = attributesOf(value.attributes);
  const instantiation = String(value.instantiation ?? "").toLowerCase();
  const kind = kindOf(attributes.get("type"), instantiation);
  if (!isInstantiation(instantiation)) return bad(`instantiation ${JSON.stringify(value.instantiation)}`);
  if (kind === undefined) return bad(`type ${JSON.stringify(attributes.get("type"))}`);
  const expires = value.expires ?? undefined;
  if (expires !== undefined && !isTime(expires)) return bad(`expires ${JSON.stringify(expires)}`);
  const keys = keysOf(value.keys);
  const initscript =
    textTag(attributes, "initscript_code") ?? initscriptOf(textTag(attributes, "initscript"), scripts);
  if (initscript.includes("\0")) return bad("the initscript holds NUL");
  // The name of an image, as `default` was that of the one for all.
  const vref = textTag(attributes, "vref");
  if (vref !== undefined && !IMAGE.test(vref)) return bad(`vref ${JSON.stringify(vref)}`);
  const delegate = textTag(attributes, "delegations");
  return {
    name,
    // PLC has no versions. Its timestamp orders the replies, and a timestamp of the sliver itself counts for it alone.
    stamp: { epoch: 0, number: isTime(value.timestamp) ? value.timestamp : timestamp },
    generation: 0,
    kind,
    instantiation,
    ...defined({ expiresAt: expires }),
    keys,
    ...(vref === undefined || vref === "default" ? {} : { image: vref }),
    initscript,
    delegations: delegate !== undefined && NAME.test(delegate) ? [{ caller: delegate }] : [],
    rspec: rspecOf(attributes, profile),
    ...(isTime(value.slice_id) ? { sliceId: value.slice_id } : {}),
    // Only texts: a wire dialect returns them as they are.
    attributes: Object.fromEntries(
      [...attributes].flatMap(([key, text]) => (typeof text === "string" ? [[key, text]] : [])),
    ),
  };
}

/** Entries that are not keys are left out; the other keys are used. An entry is a text, or a struct with `key`. */
function keysOf(value: unknown): string[] {
  const entries = Array.isArray(value) ? value : [];
  return entries.flatMap((entry) => {
    try {
      const text = isStruct(entry) ? entry.key : entry;
      return typeof text === "string" ? [sshKey(text)] : [];
    } catch {
      return [];
    }
  });
}

/** Of several tags with one name the last one counts. */
function attributesOf(value: unknown): Map<string, unknown> {
  const tags = new Map<string, unknown>();
  for (const tag of Array.isArray(value) ? value : []) {
    const name = isStruct(tag) ? (tag.tagname ?? tag.name) : undefined;
    if (typeof name === "string" && /^[A-Za-z0-9_.-]{1,64}$/.test(name))
      tags.set(name, (tag as Struct).value);
  }
  return tags;
}

/** The script of a tag: by a name that the reply lists. Before 2007 the tag itself was the script. */
function initscriptOf(tag: string | undefined, scripts: ReadonlyMap<string, string>): string {
  if (tag === undefined) return "";
  return scripts.get(tag) ?? (tag.startsWith("#!") ? tag : "");
}

/** The scripts that the reply lists, by their names. */
function initscripts(value: unknown): Map<string, string> {
  const scripts = new Map<string, string>();
  for (const one of Array.isArray(value) ? value : [])
    if (isStruct(one) && typeof one.name === "string" && typeof one.script === "string")
      scripts.set(one.name, one.script);
  return scripts;
}

/** The kind of account by the old types. Unknown types are refused rather than made as slivers. */
function kindOf(type: unknown, instantiation: string): Incoming["kind"] | undefined {
  if (type === undefined || type === "") return instantiation === "nm-controller" ? "controller" : "sliver";
  if (type === "delegate" || type === "controller.Controller") return "controller";
  return typeof type === "string" && type.startsWith("sliver.") ? "sliver" : undefined;
}

function isInstantiation(text: string): text is Incoming["instantiation"] {
  return (INSTANTIATIONS as readonly string[]).includes(text);
}

/** Whether a reply is for this node; the oldest replies name none. */
function isFor(value: unknown, node: string): boolean {
  return isStruct(value) && (value.node_id === undefined || String(value.node_id) === node);
}

function isStruct(value: unknown): value is Struct {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Seconds since the Unix epoch. */
function isTime(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** The tag's amount if it is a number, otherwise the default. */
function rspecOf(tags: ReadonlyMap<string, unknown>, { policy, resources }: WireProfile): Rspec {
  const rspec: { -readonly [name in Resource]: number } = { ...policy.defaults };
  for (const { wire, resource, scale } of resources) {
    const amount = tagAmount(tags.get(wire), scale);
    if (amount !== undefined) rspec[resource] = amount;
  }
  const cores = /^(\d{1,4})(b?)$/.exec(String(tags.get("cpu_cores") ?? ""));
  if (cores === null) return rspec;
  return { ...rspec, cpuCores: Number(cores[1]), cpuCoresBestEffort: cores[2] === "b" ? 1 : 0 };
}

/** The text of a tag; an empty one counts as absent. */
function textTag(tags: ReadonlyMap<string, unknown>, name: string): string | undefined {
  const value = tags.get(name);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The amount of a tag. Negative amounts had no meaning and count as 0. */
function tagAmount(value: unknown, scale: number): number | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const digits = /^\s*([+-]?\d{1,15})\s*$/.exec(String(value))?.[1];
  return digits === undefined ? undefined : Math.min(MAX_AMOUNT, Math.max(0, Number(digits)) * scale);
}
