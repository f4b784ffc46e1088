import { RecordError, shown } from "./errors.ts";
import { type Field, isObject, number, odd, oneOf, strict, text, word } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** What machines are bought by: where, and of which kind. Labels of one type share their luck. */
export interface Offering {
  readonly provider: string;
  /** Null: the provider has no zones, or chooses by itself. */
  readonly az: string | null;
  /** The driver's word for flavour and market, else the label's name. */
  readonly type: string;
}

/** What failures are counted of: an offering, or a label in all its places. */
export type FailureScope = "offering" | "label";

/** Failed launches of an offering or a label, as all launchers share them. Times in the tree are tree time, milliseconds. */
export interface FailureRecord {
  /** Those that count against the hour's budget; it drains steadily. */
  readonly spent: { readonly level: number; readonly at: number };
  /** Of an offering: since it was open last. Of a label: in a row. */
  readonly failures: number;
  /** When an offering closed first since it was open last; when the first of a label's failures in a row was. */
  readonly since: number;
  /** Kind and text of the last error. */
  readonly kind: string;
  readonly error: string;
  /** Of an offering: nothing is launched of it before `until`, and then by one request at a time. */
  readonly pause?: {
    /** `failures`: launches failed in a row, or the cloud has no room. `budget`: too many failed within the hour. */
    readonly why: "failures" | "budget";
    /** Times that it closed since it was open last. */
    readonly opens: number;
    readonly until: number;
  };
}

/** Where the failures of offerings are kept; one that is open has no record. */
export const BREAKERS = "/nodeyard/breakers";
/** Where the failures of labels are kept of which nothing works; one that works has no record. */
export const BUDGETS = "/nodeyard/budgets";

type Pause = NonNullable<FailureRecord["pause"]>;
type Counted = Omit<FailureRecord, "pause">;

const bucket: Field<FailureRecord["spent"]>["read"] = (value) => {
  if (!isObject(value)) return odd;
  const [level, at] = [number(value.level, () => {}), number(value.at, () => {})];
  return level === odd || at === odd ? odd : { level: level as number, at: at as number };
};
const counted = {
  spent: strict("spent", bucket),
  failures: strict("failures", number),
  since: strict("since", number),
  kind: strict("kind", word),
  error: strict("error", word),
};
const remedy = (key: string) => `; delete ${failurePath(key)} and it is launched as if nothing had failed`;
/** Its subject stands in it for people: it is read from the key. */
const ofLabel = ownRecord<Counted & { readonly label: string }>(
  "failures of",
  { label: strict("label", word), ...counted },
  remedy,
);
const ofOffering = ownRecord<Counted & Pause & Offering>(
  "failures of",
  {
    provider: strict("provider", word),
    az: strict("az", text),
    type: strict("type", word),
    why: strict("why", oneOf("failures", "budget")),
    ...counted,
    opens: strict("opens", number),
    until: strict("until", number),
  },
  remedy,
);
const probes = ownRecord<{ readonly request: string }>("probe", { request: strict("request", word) });

const LABEL_KEY = /^label\|[^|]+$/;

/** The key of an offering, which is also the name of its record in the tree. */
export function offeringKey({ provider, az, type }: Offering): string {
  return [provider, az ?? "", type].map(encodeURIComponent).join("|");
}

/** The key of a label in all of its places. No offering has such a key. */
export function labelKey(label: string): string {
  return `label|${encodeURIComponent(label)}`;
}

/** The offering or label that a key names; undefined for any other text. */
export function subjectOf(
  key: string,
):
  | ({ readonly scope: "offering" } & Offering)
  | { readonly scope: "label"; readonly label: string }
  | undefined {
  try {
    const [first = "", second = "", third, ...more] = key.split("|").map(decodeURIComponent);
    if (third === undefined)
      return first === "label" && second !== "" ? { scope: "label", label: second } : undefined;
    return more.length > 0
      ? undefined
      : { scope: "offering", provider: first, az: second === "" ? null : second, type: third };
  } catch {
    return undefined;
  }
}

/** `key`: offeringKey or labelKey. */
export function failurePath(key: string): string {
  return `${LABEL_KEY.test(key) ? BUDGETS : BREAKERS}/${key}`;
}

/** Stands, bound to the session of its launcher, while a request tries an offering that is closed. */
export function probePath(key: string): string {
  return `${failurePath(key)}/probe`;
}

/** The key of the path of a record, or of what stands beneath it; undefined for any other path. */
export function failureKey(path: string): string | undefined {
  const [, root, folder, key] = path.split("/");
  return root === "nodeyard" && (folder === "breakers" || folder === "budgets") ? key : undefined;
}

/** A probe as it is stored: the request that tries. */
export function encodeProbe(request: string): Uint8Array {
  return probes.encode({ request });
}

/** The request that tries; "" for one that only a later release understands. */
export function decodeProbe(data: Uint8Array): string {
  return probes.readable(data).request ?? "";
}

/** `stored`: the record as it was read, of one that is changed. What a later release wrote into it stays, byte for byte. */
export function encodeFailures(
  key: string,
  { pause, ...record }: FailureRecord,
  stored?: Uint8Array,
): Uint8Array {
  const subject = subjectOf(key);
  if (subject?.scope === "offering" && pause !== undefined)
    return ofOffering.encode({ ...record, ...pause, ...subject }, stored);
  return ofLabel.encode({ ...record, label: subject?.scope === "label" ? subject.label : key }, stored);
}

/** @throws RecordError for a record that is not one of a version that this release reads, or whose key names nothing */
export function decodeFailures(key: string, data: Uint8Array): FailureRecord {
  const subject = subjectOf(key);
  if (subject === undefined)
    throw new RecordError("record.bad_id", `${shown(key)} names no offering or label`);
  if (subject.scope === "label") {
    const { label: _, ...record } = ofLabel.decode(key, data);
    return record;
  }
  const {
    provider: _provider,
    az: _az,
    type: _type,
    why,
    opens,
    until,
    ...record
  } = ofOffering.decode(key, data);
  return { ...record, pause: { why, opens, until } };
}
