import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gaugeNames, PrometheusExporter, promName } from "@nodeyard/metrics";
import { Counters, counterNames, durationNames, levelNames } from "@nodeyard/telemetry";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { requirePromtool } from "../../testing/prometheus/index.ts";

const folder = join(import.meta.dirname, "../monitoring");
const read = (name: string) => readFileSync(join(folder, name), "utf8");

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}
interface Cases {
  readonly input_series: readonly { readonly series: string }[];
  readonly alert_rule_test: readonly { readonly alertname: string }[];
}
const { rules } = (parse(read("nodeyard.rules.yaml")) as { groups: { rules: Alert[] }[] }).groups[0]!;
const [cases] = (parse(read("nodeyard.rules.test.yaml")) as { tests: readonly [Cases] }).tests;
const dashboard = JSON.parse(read("nodeyard.dashboard.json")) as {
  panels: { title: string; targets?: { expr: string }[] }[];
  templating: { list: { definition?: string }[] };
};
const shown = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

const promtool = (...words: string[]) => execFileSync("promtool", words, { encoding: "utf8", stdio: "pipe" });

test.skipIf(requirePromtool())("Prometheus accepts the rules, and each alert fires and ends", () => {
  expect(promtool("check", "rules", join(folder, "nodeyard.rules.yaml"))).toContain("SUCCESS");
  expect(promtool("test", "rules", join(folder, "nodeyard.rules.test.yaml"))).toContain("SUCCESS");
  for (const { alert } of rules)
    expect(
      cases.alert_rule_test.filter(({ alertname }) => alertname === alert),
      alert,
    ).toMatchObject([{ exp_alerts: [expect.anything()] }, { exp_alerts: [] }]);
});

test.skipIf(requirePromtool())("Prometheus accepts every expression of the dashboard", () => {
  const place = mkdtempSync(join(tmpdir(), "nodeyard-dashboard-"));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const each = shown.map((expr, at) => ({
    record: `shown:${at}`,
    expr: expr.replaceAll("$__rate_interval", "5m"),
  }));
  writeFileSync(join(place, "rules.yaml"), JSON.stringify({ groups: [{ name: "dashboard", rules: each }] }));
  expect(promtool("check", "rules", join(place, "rules.yaml"))).toContain(`${each.length} rules found`);
});

test("alerts, their tests and the dashboard name only metrics of a process, with labels that they have", async () => {
  const { text } = await (await PrometheusExporter.start("0")).page(new Counters(), []);
  const served = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!));
  const labels = labelsOf();
  const series = cases.input_series.map((one) => one.series);
  const variables = dashboard.templating.list.flatMap(({ definition = [] }) => definition);
  for (const expr of [...rules.map((rule) => rule.expr), ...shown, ...variables, ...series])
    for (const [, full, braces = ""] of expr.matchAll(
      /\b((?:nodeyard|nodejs|process)_\w+)(?:\{([^}]*)\})?/g,
    )) {
      const name = full!.replace(/_(bucket|count|sum)$/, "");
      expect(served, expr).toContain(name);
      const own = labels.get(name) ?? [];
      for (const [, label] of braces.matchAll(/(\w+)(?:=|!=|=~|!~)"/g))
        expect([...own, "job", "instance"], expr).toContain(label);
      if (series.includes(expr))
        expect([...braces.matchAll(/(\w+)=/g)].map(([, label]) => label).sort(), expr).toEqual(
          [...own, "job", "instance"].sort(),
        );
    }
});

/** Of the program's own metrics, by their names on Prometheus' page. */
function labelsOf(): ReadonlyMap<string, readonly string[]> {
  const { counter, duration, level, gauge } = promName;
  const of = (
    table: Readonly<Record<string, { readonly labels: readonly string[] }>>,
    nameOf: (name: never) => string,
  ) => Object.entries(table).map(([name, { labels }]) => [nameOf(name as never), labels] as const);
  return new Map([
    ...of(counterNames, counter),
    ...of(durationNames, duration),
    ...of(levelNames, level),
    ...of(gaugeNames, gauge),
  ]);
}

test("each alert has a section of the page that it links to, and no section is of an alert that is gone", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/how-to/alerts.md"), "utf8");
  const sections = [...page.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
  expect(sections).toEqual(rules.map(({ alert }) => alert));
  for (const { alert, annotations } of rules)
    expect(annotations.runbook_url).toBe(`docs/how-to/alerts.md#${alert.toLowerCase()}`);
});
