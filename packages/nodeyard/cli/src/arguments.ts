import type { Pairing } from "@nodeyard/model";
import type { Explained } from "@nodeyard/operations";
import { UsageError } from "./errors.ts";

/**
 * Nodes of one request. It keeps a misspelt count (`debian:1000000`) from asking for a whole cloud; Nodepool itself has no such
 * limit.
 */
const MAX_NODES = 1_000;
/** Milliseconds of each unit. */
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Old clients say "high"; the number is the prefix of the request's id (docs/contract/records.md, "Node request"). */
const PRIORITIES: Readonly<Record<string, string>> = { high: "100", normal: "200", low: "300" };

/** A number, but not as a count is written; a version as in `ubuntu:24.04` is part of a label. */
const NO_COUNT = /:([+-]\d+|\d+e\d+|0x[\da-f]+|\d[\d_,]*[_,]\d+)$/i;

/**
 * `LABEL[:N]...` as one entry per node, in the order given, which is the order of the nodes in the request. A label may itself
 * contain colons: only digits after the last colon are a count. Throws UsageError.
 */
export function parseLabels(words: readonly string[]): readonly string[] {
  const labels = words.flatMap((word) => {
    const counted = /^(.+):(\d+)$/.exec(word);
    const label = counted?.[1] ?? word;
    const count = counted === null ? 1 : Number(counted[2]);
    if (label === "" || label.startsWith(":") || label.endsWith(":"))
      throw new UsageError(
        `${JSON.stringify(word)} is not LABEL or LABEL:N; an example: nodeyard request ubuntu-noble:2`,
      );
    // Without this check `debian:1e3` would be a label that no pool offers, and the request would wait until its lease expires.
    const odd = NO_COUNT.exec(word)?.[1];
    if (odd !== undefined)
      throw new UsageError(
        `${JSON.stringify(word)}: ${odd} is not a number of nodes; give 1 to ${MAX_NODES}, also after a label of that name (${word}:1)`,
      );
    if (count < 1 || count > MAX_NODES)
      throw new UsageError(`${JSON.stringify(word)} asks for ${count} nodes; give 1 to ${MAX_NODES}`);
    return Array.from({ length: count }, () => label);
  });
  if (labels.length > MAX_NODES)
    throw new UsageError(`${labels.length} nodes are more than the ${MAX_NODES} of one request`);
  return labels;
}

/** `FACT` for all nodes, or `FACT=LABEL,LABEL` for those of some labels. Throws UsageError. */
export function parsePairing(text: string): Pairing {
  const [, fact, labels] = /^([^=]+)(?:=(.+))?$/.exec(text) ?? [];
  if (fact === undefined)
    throw new UsageError(
      `${JSON.stringify(text)} is not FACT or FACT=LABEL,LABEL; examples: --same zone, --same rack=vm,arm-board`,
    );
  return { fact, labels: labels?.split(",") ?? [] };
}

/**
 * "90s", "10m", "1h30m", "2d"; a bare number is seconds, as in nodepool.yaml. Returns milliseconds. Throws UsageError, also for
 * 0: no caller has a meaning for it, and `hold --for 0` would look like "not at all" while the tree means "without limit" by it.
 */
export function parseDuration(text: string): number {
  const whole = /^(\d+)$/.exec(text);
  if (whole !== null) return positive(text, Number(text) * 1_000);
  const parts = [...text.matchAll(/(\d+)([smhd])/g)];
  // The matches put together must be the whole text: "1h 30m" and "1x30m" would else pass by their valid parts.
  if (parts.length === 0 || parts.map((part) => part[0]).join("") !== text)
    throw new UsageError(`${JSON.stringify(text)} is not a duration; examples: 90s, 10m, 1h30m, 2d`);
  const ms = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS[unit!]!, 0);
  return positive(text, ms);
}

/** A year at most: more is a mistake in the unit. */
function positive(text: string, ms: number): number {
  if (ms > 0 && ms <= 365 * UNITS.d!) return ms;
  throw new UsageError(`${JSON.stringify(text)} is not a duration between one second and 365 days`);
}

/**
 * high, normal, low, or three digits of one's own; returns three digits, with which the id of the request begins. Launchers serve
 * requests in the order of their ids, so lower is earlier. Throws UsageError.
 */
export function parsePriority(text: string): string {
  const value = PRIORITIES[text] ?? text;
  if (/^\d{3}$/.test(value)) return value;
  throw new UsageError(
    `priority ${JSON.stringify(text)}: give high, normal, low, or three digits (100 comes first)`,
  );
}

/**
 * `HOST:PORT`, `[::1]:PORT`, or a port alone, which means loopback; `option`: whose value it is, for the error. Port 0 is
 * allowed: the system chooses one. Nothing is resolved here; a host that does not exist fails when the daemon listens. Throws
 * UsageError.
 */
export function parseAddress(text: string, option: string): { readonly host: string; readonly port: number } {
  const match = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535)
    throw new UsageError(
      `${option}: ${JSON.stringify(text)} is not HOST:PORT, with a port up to 65535; an example: 127.0.0.1:8005`,
    );
  return { host: match[1] ?? match[2] ?? "127.0.0.1", port };
}

/** A node id as people type it: the zeros in front may be left out. Returns ten digits, the name of the znode. Throws UsageError. */
export function parseNodeId(text: string): string {
  if (!/^\d{1,10}$/.test(text))
    throw new UsageError(
      `${JSON.stringify(text)} is not a node id: up to ten digits, as "nodeyard list" shows`,
    );
  return text.padStart(10, "0");
}

/** Kinds that may stand before a name. `explain label` alone is therefore about a label named "label". */
const KINDS: ReadonlySet<string> = new Set(["request", "lease", "job", "node", "label", "image"]);

/**
 * The subject of `explain`: `KIND NAME`, or a name alone. The kind of an id follows from its shape; any other name is a label.
 * Labels that look like ids ("7") and all diskimages need their kind. Throws UsageError.
 */
export function parseSubject(words: readonly string[]): Explained {
  const [first = "", second] = words;
  if (words.length === 1) return { kind: kindOf(first), id: idOf(kindOf(first), first) };
  if (words.length === 2 && second !== undefined && KINDS.has(first))
    return { kind: first as Explained["kind"], id: idOf(first as Explained["kind"], second) };
  throw new UsageError(
    `${JSON.stringify(words.join(" "))}: give one id or label, or its kind before it; examples: nodeyard explain label 7, nodeyard explain image debian`,
  );
}

/** The order decides: twelve digits could be a lease or a label, and are a lease, because its ids are what commands print. */
function kindOf(text: string): Explained["kind"] {
  if (/^[0-9a-f]{12}$/.test(text)) return "lease";
  if (/^\d{1,10}$/.test(text)) return "node";
  // Labels like debian-12 look much the same, but for the ten digits.
  if (/^[^/\s-]+-\d{10}$/.test(text)) return "request";
  if (text !== "" && !/[/\s]/.test(text)) return "label";
  throw new UsageError(
    `${JSON.stringify(text)} is not the id of a request (200-0000000001), a lease (9e54948f3a62) or a node (0000000001), and not a plain label; for any other label: nodeyard explain label NAME; for a job of a CI: nodeyard explain job ID`,
  );
}

/** The name of the record in the tree. Ids are checked here so that no other text becomes a part of a path. */
function idOf(kind: Explained["kind"], text: string): string {
  switch (kind) {
    case "lease":
      return parseLeaseId(text);
    case "node":
      return parseNodeId(text);
    case "request":
      if (/^[^/\s-]+-\d{1,10}$/.test(text)) return text;
      throw new UsageError(
        `${JSON.stringify(text)} is not a request id: like 200-0000000001, as "nodeyard request-list" shows`,
      );
    case "label":
    case "job":
      return text;
    case "image":
      return parseImage(text);
  }
}

/** Twelve hexadecimal digits in lower case, as `request` prints them. Throws UsageError. */
export function parseLeaseId(text: string): string {
  if (!/^[0-9a-f]{12}$/.test(text))
    throw new UsageError(
      `${JSON.stringify(text)} is not a lease id: twelve digits of 0-9 and a-f, as "nodeyard list --leases" shows`,
    );
  return text;
}

/**
 * A name that becomes a part of a path in the tree, as of images, builds and providers: with "/" or ".." it would name another
 * znode. Throws UsageError.
 */
export function parseImage(text: string): string {
  if (text === "" || text === "." || text === ".." || text.includes("/"))
    throw new UsageError(
      `${JSON.stringify(text)} is not a valid name: write it as the lists show it, without "/"`,
    );
  return text;
}
