import { span } from "@nodeyard/client/steps";
import { seesEverything } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { msOf } from "../data/format.ts";
import { hrefOf } from "../data/route.ts";
import type { RequestRow } from "../data/rows.ts";
import {
  labelNames,
  nodesByLabel,
  nodesByProvider,
  nodesInAll,
  providerNames,
  rows,
  versions,
  waitingFor,
} from "../data/state.ts";
import { NeedsAttention } from "../ui/attention.tsx";
import { Labels } from "../ui/facts.tsx";
import { History } from "../ui/history.tsx";
import { Age, Link, Section, State, StateBar } from "../ui/pieces.tsx";
import { Tenants } from "../ui/tenants.tsx";
import { limitOf, useProviders } from "../ui/use-providers.ts";

/** Number of longest-waiting requests shown. */
const SHOWN = 8;

export function Overview() {
  return (
    <>
      <h1 class="hidden">Overview</h1>
      {seesEverything() && <NeedsAttention />}
      <Figures />
      <div class="columns">
        <div>
          {seesEverything() && <History />}
          <Groups title="Labels" view="labels" />
        </div>
        <div>
          <Queue />
          {seesEverything() && <Tenants />}
          <Providers />
          <Members />
        </div>
      </div>
    </>
  );
}

function Figures() {
  void versions.node.value;
  const waiting = waitingRequests();
  const nodes = nodesInAll.of("all");
  const count = (...states: string[]) => states.reduce((sum, state) => sum + (nodes.get(state) ?? 0), 0);
  const figures: readonly (readonly [string, number | string, string, string])[] = [
    ["Ready", count("ready"), "good", hrefOf("nodes", undefined, { state: "ready" })],
    [
      "Building",
      count("building", "testing", "init"),
      "work",
      hrefOf("nodes", undefined, { state: "building" }),
    ],
    ["In use", count("in-use"), "busy", hrefOf("nodes", undefined, { state: "in-use" })],
    ["Held", count("hold"), "held", hrefOf("nodes", undefined, { state: "hold" })],
    ["Being deleted", count("used", "deleting"), "quiet", hrefOf("nodes", undefined, { state: "deleting" })],
    ["Failed", count("failed", "aborted"), "bad", hrefOf("nodes", undefined, { state: "failed" })],
    ["Waiting requests", waiting.length, "wait", hrefOf("requests", undefined, { sort: "-created" })],
  ];
  return (
    <ul class="figures" aria-label="Now">
      {figures.map(([title, value, tone, href]) => (
        <li key={title}>
          <a href={href} class={value === 0 ? "zero" : tone}>
            <strong>{value}</strong> <span>{title}</span>
          </a>
        </li>
      ))}
      <li>
        <a
          href={hrefOf("requests", undefined, { sort: "-created" })}
          class={waiting.length === 0 ? "zero" : "wait"}
        >
          <strong>
            <Longest waiting={waiting} />
          </strong>{" "}
          <span>Longest wait</span>
        </a>
      </li>
    </ul>
  );
}

function Longest({ waiting }: { readonly waiting: readonly RequestRow[] }) {
  const since = Math.min(...waiting.map(createdOf));
  return <>{Number.isFinite(since) ? span((now.value - since) / 1_000) : "–"}</>;
}

function createdOf({ created, since }: RequestRow): number {
  return msOf(created ?? since) || Number.POSITIVE_INFINITY;
}

function waitingRequests(): readonly RequestRow[] {
  return rows("request").filter(({ state }) => state === "requested" || state === "pending");
}

function Queue() {
  const waiting = waitingRequests().toSorted((one, other) => createdOf(one) - createdOf(other));
  return (
    <Section title="Longest waits" aside={<a href={hrefOf("requests")}>All requests</a>}>
      {waiting.length === 0 && <p class="dim">No request waits.</p>}
      <ul class="lines">
        {waiting.slice(0, SHOWN).map(({ id, state, labels, created, since }) => (
          <li key={id}>
            <Link view="requests" id={id} /> <State state={state} />
            <span class="grow">
              <Labels labels={labels} />
            </span>
            <Age at={created ?? since} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

interface GroupsOf {
  readonly title: string;
  readonly view: "labels" | "providers";
  /** How many nodes a group may have. */
  readonly limits?: ReadonlyMap<string, number>;
}

function Providers() {
  const { data } = useProviders();
  const limits = data?.flatMap((one) => {
    const limit = limitOf(one);
    return limit === undefined ? [] : [[one.provider, limit] as const];
  });
  return <Groups title="Providers" view="providers" limits={new Map(limits)} />;
}

function Groups({ title, view, limits = new Map() }: GroupsOf) {
  void versions.node.value;
  void versions.request.value;
  const isLabels = view === "labels";
  const counts = isLabels ? nodesByLabel : nodesByProvider;
  const names = isLabels ? labelNames() : providerNames();
  const sums = new Map(names.map((name) => [name, sumOf(counts.of(name))]));
  const most = Math.max(1, ...sums.values());
  return (
    <Section title={title}>
      {names.length === 0 && (
        <p class="dim">None yet: they come with the first launcher that has a provider in nodepool.yaml.</p>
      )}
      <table class="groups">
        <thead>
          <tr>
            <th scope="col">{isLabels ? "Label" : "Provider"}</th>
            <th scope="col">Nodes</th>
            <th scope="col" class="number">
              Ready
            </th>
            <th scope="col" class="number">
              All
            </th>
            {isLabels && (
              <th scope="col" class="number">
                Waiting
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">
                <a href={hrefOf(view, name)}>{name}</a>
              </th>
              <td>
                <StateBar counts={counts.of(name)} total={limits.get(name) ?? most} />
              </td>
              <td class="number">{counts.of(name).get("ready") ?? 0}</td>
              <td class="number">
                {sums.get(name)}
                {limits.has(name) && ` of ${limits.get(name)}`}
              </td>
              {isLabels && <td class="number">{waitingFor(name)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

function Members() {
  const members = rows("member");
  if (members.length === 0) return null;
  return (
    <Section title="Launchers and builders">
      <ul class="lines">
        {members.map(({ id, kind, hostname, state, version }) => (
          <li key={id}>
            <State state={state} />
            <span class="grow">
              {kind} on {hostname}
            </span>
            <span class="dim">{version}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
