import type { Reply } from "@nodeyard/client";
import { span } from "@nodeyard/client/steps";
import { useState } from "preact/hooks";
import { call } from "../data/api.ts";
import { Link, Problem, Section } from "../ui/pieces.tsx";

type Plan = Reply<"plan_config">;
type Row = Plan["rows"][number];
type Check = Reply<"check_config">;

/** The server plays for 50 s at most. Milliseconds. */
const PLAN_MS = 60_000;

/** A configuration before it is put into place: what is wrong with it, and how it would have served the requests of the last days. */
export function PlanView() {
  const [text, setText] = useState("");
  const [days, setDays] = useState(7);
  const [doing, setDoing] = useState<"check" | "plan">();
  const [check, setCheck] = useState<Check>();
  const [plan, setPlan] = useState<Plan>();
  const [error, setError] = useState<unknown>();
  const run = async (what: "check" | "plan") => {
    setDoing(what);
    for (const forget of [setCheck, setPlan, setError]) forget(undefined);
    try {
      if (what === "check") setCheck(await call<Check>("POST", "/v1/config/check", { text }));
      else {
        const found = await call<Plan>("POST", "/v1/config/plan", { text, days }, {}, PLAN_MS);
        setCheck(found);
        if (found.valid) setPlan(found);
      }
    } catch (reason) {
      setError(reason);
    }
    setDoing(undefined);
  };
  return (
    <>
      <header>
        <h1>Plan</h1>
      </header>
      <Section title="A configuration, as in nodepool.yaml">
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void run("plan");
          }}
        >
          <p class="dim">
            Nothing is changed. Variables of the environment are not filled in, and the secure file is not
            read.
          </p>
          <label>
            <span class="hidden">Configuration</span>
            <textarea
              rows={12}
              required
              spellcheck={false}
              placeholder="labels: …"
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
          </label>
          <div class="tools">
            <input
              type="file"
              aria-label="Read it from a file"
              accept=".yaml,.yml"
              onChange={async ({ currentTarget }) =>
                setText((await currentTarget.files?.[0]?.text()) ?? text)
              }
            />
            <label>
              With the requests of{" "}
              <select value={days} onChange={({ currentTarget }) => setDays(Number(currentTarget.value))}>
                <option value={1}>the last day</option>
                <option value={7}>the last week</option>
                <option value={31}>the last month</option>
              </select>
            </label>
            <button
              type="button"
              disabled={doing !== undefined || text === ""}
              onClick={() => void run("check")}
            >
              Check
            </button>
            <button type="submit" class="primary" disabled={doing !== undefined}>
              Plan
            </button>
          </div>
        </form>
        <Problem error={error} />
      </Section>
      <div role="status" class="stack">
        {doing === "plan" && <p class="dim">Playing these requests, which may take a minute…</p>}
        {check !== undefined && <Findings check={check} />}
        {plan !== undefined && <Outcome plan={plan} />}
      </div>
    </>
  );
}

function Findings({ check: { valid, findings } }: { readonly check: Check }) {
  return (
    <Section title={valid ? "The configuration is valid" : "The configuration has errors"}>
      {findings.length === 0 && <p class="dim">There are no warnings either.</p>}
      <ul class="lines">
        {findings.map(({ severity, line, column, path, message }) => (
          <li key={`${line} ${column} ${path} ${message}`}>
            <span class={severity === "error" ? "state bad" : "state work"}>
              <span aria-hidden="true">{severity === "error" ? "✕" : "▲"}</span> {severity}
            </span>
            <span class="grow">
              <code>{path}</code> {message}
            </span>
            <span class="dim">
              line {line}, column {column}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

const FIGURES: readonly (readonly [title: string, value: (of: Row["today"]) => string | number])[] = [
  ["Requests", (of) => of.requests],
  ["Median wait", (of) => waitText(of.wait_median)],
  ["95 % wait", (of) => waitText(of.wait_p95)],
  ["Refused", (of) => of.refused],
  ["Unanswered", (of) => of.unanswered],
  ["Nodes at once", (of) => of.peak_nodes],
  ["Cores", (of) => of.peak_cores],
  ["RAM, MiB", (of) => of.peak_ram],
];

function waitText(seconds: number | null): string {
  return seconds === null ? "–" : span(seconds);
}

function Outcome({ plan: { requests, rows, lost, lost_count, assumed } }: { readonly plan: Plan }) {
  return (
    <Section title={`${requests} requests: today → planned`}>
      {lost_count > 0 && (
        <p class="problem">
          <span aria-hidden="true">✕</span> {lost_count} of the requests that today's configuration serves
          would not be served:{" "}
          <span class="ids">
            {lost.map((id) => (
              <Link key={id} view="requests" id={id} />
            ))}
          </span>
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <div class="wide-table" tabIndex={0}>
        <table class="groups">
          <thead>
            <tr>
              <th>Provider</th>
              <th>Label</th>
              {FIGURES.map(([title]) => (
                <th key={title} class="number">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ provider, label, today, planned }) => (
              <tr key={`${provider} ${label}`}>
                <th scope="row">{provider ?? "none"}</th>
                <td>{label ?? "all labels"}</td>
                {FIGURES.map(([title, value]) => (
                  <td key={title} class="number">
                    {value(today) === value(planned) ? value(today) : `${value(today)} → ${value(planned)}`}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {assumed.map((line) => (
        <p key={line} class="dim">
          Not recorded: {line}
        </p>
      ))}
    </Section>
  );
}
