import { span } from "@nodeyard/client/steps";
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { now } from "../data/clock.ts";
import { msOf, whoText } from "../data/format.ts";
import { hrefOf } from "../data/route.ts";
import type { LeaseRow } from "../data/rows.ts";

/** Sign and tone of each state. Signs differ in shape, because some users cannot tell the colours apart. */
const STATES: Readonly<Record<string, readonly [sign: string, tone: string]>> = {
  good: ["●", "good"],
  ready: ["●", "good"],
  fulfilled: ["●", "good"],
  granted: ["●", "good"],
  running: ["●", "good"],
  online: ["●", "good"],
  "in-use": ["▲", "busy"],
  busy: ["▲", "busy"],
  idle: ["○", "wait"],
  used: ["△", "quiet"],
  building: ["◐", "work"],
  testing: ["◐", "work"],
  pending: ["◐", "work"],
  uploading: ["◐", "work"],
  unknown: ["○", "wait"],
  requested: ["○", "wait"],
  waiting: ["○", "wait"],
  init: ["○", "wait"],
  hold: ["■", "held"],
  suspended: ["■", "held"],
  paused: ["■", "held"],
  deleting: ["◇", "quiet"],
  released: ["◇", "quiet"],
  degraded: ["▼", "held"],
  "used up": ["▼", "held"],
  failing: ["✕", "bad"],
  failed: ["✕", "bad"],
  aborted: ["✕", "bad"],
  "killed for memory": ["✕", "bad"],
};

export function toneOf(state: string): string {
  return STATES[state]?.[1] ?? "quiet";
}

export function State({ state }: { readonly state: string }) {
  const [sign, tone] = STATES[state] ?? ["◇", "quiet"];
  return (
    <span class={`state ${tone}`}>
      <span aria-hidden="true">{sign}</span> {state}
    </span>
  );
}

/** Time since `at`, or with `ahead` time until it. Updated every second. */
export function Age({
  at,
  ahead = false,
}: {
  readonly at: string | null | undefined;
  readonly ahead?: boolean;
}) {
  const ms = msOf(at);
  if (at == null || Number.isNaN(ms)) return <span class="dim">–</span>;
  const seconds = (now.value - ms) / 1_000;
  return (
    <time dateTime={at} title={new Date(ms).toLocaleString()}>
      {span(ahead ? -seconds : seconds)}
    </time>
  );
}

/** The moment in a sentence or list of events: "14 s ago", "in 59 min". */
export function When({ at }: { readonly at: string | null | undefined }) {
  const ahead = msOf(at) > now.value;
  return (
    <span class="when">
      {ahead && "in "}
      <Age at={at} ahead={ahead} />
      {!ahead && !Number.isNaN(msOf(at)) && " ago"}
    </span>
  );
}

/** To what has this id or name. */
export function Link({ view, id }: { readonly view: string; readonly id: string }) {
  return (
    <a class={/^(nodes|requests|leases)$/.test(view) ? "id" : ""} href={hrefOf(view, id)}>
      {id}
    </a>
  );
}

/** All leases of the owner are one step away. */
export function Owner({ owner }: { readonly owner: string }) {
  return <a href={hrefOf("leases", undefined, { q: owner })}>{whoText(owner)}</a>;
}

/** The job of a CI that a lease is for, with a link to its page there. The server takes links of the web only. */
export function Job({ job }: Pick<LeaseRow, "job">) {
  if (job == null) return null;
  const text = [job.system, job.name, job.id].filter((part) => part !== null).join(" ");
  return job.url === null ? (
    <span>{text}</span>
  ) : (
    <a href={job.url} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}

export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const [copied, setCopied] = useState<boolean | undefined>();
  const copy = async () => {
    setCopied(await copyText(text));
    setTimeout(() => setCopied(undefined), 2_000);
  };
  return (
    <span class="copy">
      <code>{text}</code>
      <button type="button" class="small" onClick={copy} aria-label={`Copy ${what}`}>
        {copied === undefined ? "Copy" : copied ? "Copied" : "Select and copy it yourself"}
      </button>
    </span>
  );
}

/** Copies a text. Browsers offer the clipboard only to pages from HTTPS or from localhost, so there is an older way for the others. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function Problem({ error }: { readonly error: unknown }) {
  if (error === undefined) return null;
  return (
    <p class="problem" role="alert">
      <span aria-hidden="true">✕</span> {error instanceof Error ? error.message : String(error)}
    </p>
  );
}

export function Section({
  title,
  children,
  aside,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly aside?: ComponentChildren;
}) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** Shares of a whole by state, as one bar. The legend has the same numbers as text. */
export function StateBar({
  counts,
  total,
}: {
  readonly counts: ReadonlyMap<string, number>;
  /** Value of the full width; absent: the sum of the counts. */
  readonly total?: number | undefined;
}) {
  const shown = ORDER.flatMap((state) => {
    const count = counts.get(state) ?? 0;
    return count > 0 ? [[state, count] as const] : [];
  });
  const sum = total ?? shown.reduce((all, [, count]) => all + count, 0);
  const words = shown.map(([state, count]) => `${count} ${state}`).join(", ");
  return (
    <div class="bar" role="img" aria-label={words === "" ? "none" : words} title={words}>
      {shown.map(([state, count]) => (
        <span key={state} class={toneOf(state)} style={{ width: `${(count / Math.max(1, sum)) * 100}%` }} />
      ))}
    </div>
  );
}

/** Order of states in the bar: that of a node's life. */
const ORDER = [
  "ready",
  "in-use",
  "building",
  "testing",
  "init",
  "hold",
  "used",
  "deleting",
  "failed",
  "aborted",
];
