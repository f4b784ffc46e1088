import { bars, type Step, took } from "@nodeyard/client/steps";
import type { Explanation } from "@nodeyard/operations";
import { now as clock } from "../data/clock.ts";
import { FactLine } from "./facts.tsx";
import { Section, When } from "./pieces.tsx";

type PastEvent = Explanation["events"][number];

export function Waterfall({ steps }: { readonly steps: readonly Step[] }) {
  // Updated every second, but only while a step is under way.
  const at = steps.some(({ seconds }) => seconds === null) ? clock.value : 0;
  return (
    <ol class="waterfall">
      {bars(steps, at).map(({ step, name, seconds, place }, index) => (
        <li key={`${step.node} ${step.began} ${name} ${index}`} class={step.error !== null ? "failed" : ""}>
          <span class="name">{name}</span>
          <span class="track" aria-hidden="true">
            {place && (
              <span
                class={step.error !== null ? "bad" : step.seconds === null ? "work" : "done"}
                style={{ left: `${place.from * 100}%`, width: `max(3px, ${(place.to - place.from) * 100}%)` }}
              />
            )}
          </span>
          <span class="took">
            {took(seconds)}
            {step.seconds === null && "…"}
          </span>
          {step.error !== null && <span class="error">failed: {step.error}</span>}
        </li>
      ))}
    </ol>
  );
}

/** Console output that a driver read from a machine that did not boot. */
export function Console({ events }: { readonly events: readonly PastEvent[] }) {
  const shown = events.filter(({ facts }) => facts.lines != null);
  if (shown.length === 0) return null;
  return (
    <Section title="Console">
      {shown.map(({ at, facts }) => (
        <Lines key={at} of="Console" lines={facts.lines} />
      ))}
    </Section>
  );
}

/** Lines of another program; nothing when there are none. */
export function Lines({ of, lines }: { readonly of: string; readonly lines: unknown }) {
  if (lines == null) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <pre class="console" role="log" aria-label={of} tabIndex={0}>
      {Array.isArray(lines) ? lines.join("\n") : String(lines)}
    </pre>
  );
}

const UNSAID = new Set(["asked", "code", "since", "nextTry", "lines", "request"]);

export function Events({
  of,
  events,
  problem,
  now,
}: {
  /** Id of what the events are about, which they do not repeat. */
  readonly of: string;
  readonly events: readonly PastEvent[];
  readonly problem: string | null;
  /** Code of the present wait, which is shown above. */
  readonly now: string | undefined;
}) {
  const last = events.findLast(({ event }) => event === "request.waits");
  const isShown = (one: PastEvent) => one !== last || one.facts.code !== now;
  // Steps are shown on the time line.
  const shown = events.filter((one) => one.event !== "node.step" && isShown(one));
  if (shown.length === 0 && problem === null) return null;
  return (
    <Section title="What happened">
      <ol class="events">
        {shown.map(({ at, event, meaning, node, facts: { facts: inner, ...outer } }, index) => {
          const all = Object.entries({ node, ...outer, ...(typeof inner === "object" ? inner : {}) });
          return (
            <li key={`${at} ${event} ${index}`}>
              <When at={at} />
              <span>
                {meaning ?? event}{" "}
                <FactLine
                  facts={Object.fromEntries(all.filter(([key, value]) => !UNSAID.has(key) && value !== of))}
                />
              </span>
            </li>
          );
        })}
      </ol>
      {problem !== null && <p class="dim">There may be more: {problem}.</p>}
    </Section>
  );
}
