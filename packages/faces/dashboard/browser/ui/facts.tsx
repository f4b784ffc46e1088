import { amountText } from "@nodeyard/client/amounts";
import { span, took } from "@nodeyard/client/steps";
import type { ComponentChildren } from "preact";
import { countsOf, partsOf } from "../data/format.ts";
import { hrefOf } from "../data/route.ts";
import { row, rows } from "../data/state.ts";
import { Link, When } from "./pieces.tsx";

type FactsOf = Readonly<Record<string, unknown>>;

/** The view of what a fact names, by the singular of the fact's name. */
const VIEWS: Readonly<Record<string, string>> = {
  ...{ node: "nodes", backing_node: "nodes" },
  ...{ request: "requests", allocated_to: "requests", waits_for_request: "requests" },
  ...{ head: "requests", kept_for: "requests" },
  ...{ lease: "leases", label: "labels", slots_of: "labels", image: "images" },
  ...{ provider: "providers", providers_not_served: "providers" },
};
/** Values of a long list that are shown. */
const MANY = 8;

/** Facts with their names. Empty values are left out. */
export function Facts({ facts }: { readonly facts: FactsOf }) {
  const shown = Object.entries(facts).filter(([, value]) => !isEmpty(value));
  if (shown.length === 0) return null;
  return (
    <dl class="facts">
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{titleOf(name)}</dt>
          <dd>
            <Value name={name} value={value} resource={facts.resource} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Facts in a line, for events. */
export function FactLine({ facts }: { readonly facts: FactsOf }) {
  const shown = Object.entries(facts).filter(([, value]) => !isEmpty(value));
  return (
    <span class="dim">
      {shown.map(([name, value], index) => (
        <span key={name}>
          {index > 0 && ", "}
          {titleOf(name)} <Value name={name} value={value} resource={facts.resource} />
        </span>
      ))}
    </span>
  );
}

function titleOf(name: string): string {
  return name.replace(/_seconds$|(?<=.)Ms$/, "").replaceAll("_", " ");
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "" || value === false) return true;
  return typeof value === "object" && !isElement(value) && Object.values(value).every(isEmpty);
}

function isElement(value: unknown): value is ComponentChildren {
  return typeof value === "object" && value !== null && "props" in value;
}

interface Named {
  /** Says what the value is: a name of something with a view is a link, a duration has its unit. */
  readonly name: string;
  readonly value: unknown;
  /** Of amounts. */
  readonly resource?: unknown;
}

function Value({ name, value, resource }: Named) {
  if (isElement(value)) return <>{value}</>;
  if (Array.isArray(value)) {
    const one = name.replace(/s$/, "");
    return (
      <>
        {value.slice(0, MANY).map((each, index) => (
          <span key={index}>
            {index > 0 && ", "}
            <Value name={one} value={each} />
          </span>
        ))}
        {value.length > MANY && ` (${value.length} in all)`}
      </>
    );
  }
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>;
  if (typeof value === "number") {
    if (name.endsWith("_seconds")) return <>{span(value)}</>;
    if (name === "ms" || name.endsWith("Ms")) return <>{took(value / 1_000)}</>;
    return <>{typeof resource === "string" ? amountText(resource, value) : value}</>;
  }
  if (typeof value !== "object" || value === null) return <Name name={name} text={String(value)} />;
  return (
    <>
      {Object.entries(value)
        .filter(([, each]) => !isEmpty(each))
        .map(([key, each], index) => (
          <span key={key}>
            {index > 0 && " "}
            {typeof each === "number" || typeof each === "boolean" ? `${titleOf(key)} ` : ""}
            <Value name={key === "id" ? name : key} value={each} />
          </span>
        ))}
    </>
  );
}

/** A value by what its name says: something with a view is a link. */
export function Name({ name, text }: { readonly name: string; readonly text: string }) {
  const view = VIEWS[name];
  if (view !== undefined) return <Link view={view} id={text} />;
  if (/pool|^declined_by$/.test(name)) {
    const [provider = "", pool] = text.split("/");
    if (pool !== undefined) return <a href={hrefOf("providers", provider)}>{text}</a>;
  }
  return <Prose text={text} />;
}

/** The pool of an id, by its row or as records have it: "host-PoolWorker.provider-pool-digits". */
function poolOf(text: string) {
  if (!text.includes("-PoolWorker.")) return row("pool", text);
  return rows("pool").find(({ launcher, provider, pool }) =>
    text.startsWith(`${launcher}-PoolWorker.${provider}-${pool}-`),
  );
}

/** A text of the program: ids in it are links, its times have the form of all times, and pools have their short names. */
export function Prose({ text }: { readonly text: string }) {
  const pool = poolOf(text);
  if (pool !== undefined)
    return (
      <a href={hrefOf("providers", pool.provider ?? "")} title={text}>
        {pool.provider}/{pool.pool} on {pool.launcher}
      </a>
    );
  return (
    <>
      {partsOf(text).map((part, index) => {
        if ("at" in part) return <When key={index} at={part.at} />;
        return "view" in part ? <Link key={index} view={part.view} id={part.id} /> : part.text;
      })}
    </>
  );
}

/** "fake-small × 3, fake-large", each a link. */
export function Labels({ labels }: { readonly labels: readonly string[] }) {
  return (
    <>
      {[...countsOf(labels)].map(([label, count], index) => (
        <span key={label}>
          {index > 0 && ", "}
          <a href={hrefOf("labels", label)}>{label}</a>
          {count > 1 && ` × ${count}`}
        </span>
      ))}
    </>
  );
}
