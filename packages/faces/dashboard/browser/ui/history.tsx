import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { call } from "../data/api.ts";
import { msOf } from "../data/format.ts";
import type { Day } from "../data/rows.ts";
import { theme } from "../data/theme.ts";
import { Problem, Section } from "./pieces.tsx";
import { useLoad } from "./use.ts";

type Point = Day["points"][number];

/** Lines of the chart: name, tone of the page, and value of a point. */
const LINES = [
  ["Ready", "good", ({ nodes }: Point) => nodes.ready ?? 0],
  ["In use", "busy", ({ nodes }: Point) => nodes["in-use"] ?? 0],
  ["Building", "work", ({ nodes }: Point) => sum(nodes, "building", "testing", "init")],
  ["Waiting requests", "wait", ({ waiting }: Point) => waiting],
] as const;
const HEIGHT = 190;

function sum(nodes: Point["nodes"], ...states: readonly string[]): number {
  return states.reduce((all, state) => all + (nodes[state] ?? 0), 0);
}

/** Chart of the last day: for everything, for a label, or for a provider. */
export function History({ of = {} }: { readonly of?: Readonly<Record<string, string>> }) {
  const path = `/v1/history?${new URLSearchParams(of)}`;
  const { data, error, reload } = useLoad(path, () => call<Day>("GET", path));
  useEffect(() => {
    // The server adds a point in this interval.
    const timer = setInterval(() => !document.hidden && reload(), (data?.step_seconds ?? 300) * 1_000);
    return () => clearInterval(timer);
  }, [data?.step_seconds, reload]);
  const points = data?.points ?? [];
  const legend = (
    <ul class="legend">
      {LINES.map(([title, tone, value]) => (
        <li key={title} class={tone}>
          <span aria-hidden="true">━</span> {title}
          <span class="hidden">: {rangeText(points, value)}</span>
        </li>
      ))}
    </ul>
  );
  return (
    <Section title="Last day" aside={legend}>
      <Problem error={error} />
      {points.length < 2 ? (
        <p class="dim">
          {data === undefined ? "" : "The lines begin here within ten minutes: a point is kept every five."}
        </p>
      ) : (
        <Chart points={points} />
      )}
    </Section>
  );
}

/** The range of a line as text, for users who cannot see the chart. */
function rangeText(points: readonly Point[], value: (point: Point) => number | null): string {
  const values = points.map(value).filter((one) => one !== null);
  return values.length === 0
    ? "none"
    : `${Math.min(...values)} to ${Math.max(...values)}, now ${values.at(-1)}`;
}

function Chart({ points }: { readonly points: readonly Point[] }) {
  const place = useRef<HTMLDivElement>(null);
  const colours = theme.value;
  useEffect(() => {
    const element = place.current!;
    const draw = () => {
      const colour = (tone: string) => toneColour(element, tone);
      const axis = {
        stroke: colour("dim"),
        grid: { stroke: colour("rule"), width: 1 },
        ticks: { show: false },
      };
      return new uPlot(
        {
          width: element.clientWidth,
          height: HEIGHT,
          legend: { show: false },
          cursor: { show: false },
          scales: { y: { range: (_, __, most) => [0, Math.max(4, most * 1.1)] } },
          axes: [
            { ...axis, size: 28, values: (_, splits) => splits.map(clockOf) },
            { ...axis, size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000] },
          ],
          series: [
            {},
            ...LINES.map(([label, tone]) => ({
              label,
              stroke: colour(tone),
              width: 1.5,
              points: { show: false },
            })),
          ],
        },
        [points.map(({ at }) => msOf(at) / 1_000), ...LINES.map(([, , value]) => points.map(value))],
        element,
      );
    };
    let plot = draw();
    const redraw = () => {
      plot.destroy();
      plot = draw();
    };
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", redraw);
      plot.destroy();
    };
  }, [points, colours]);
  return <div class="chart" ref={place} aria-hidden="true" />;
}

function clockOf(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
  });
}

/** The colour of a tone. A canvas cannot use colours of a style sheet, so an element with the tone is measured. */
function toneColour(element: Element, tone: string): string {
  const probe = element.appendChild(document.createElement("span"));
  probe.className = `tone ${tone}`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
