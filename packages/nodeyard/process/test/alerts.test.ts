import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../../../testing/patience.ts";
import { requirePromtool } from "../../../../testing/prometheus/index.ts";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { ask } from "../../../faces/api/test/rig.ts";
import { Site } from "../../cli/test/nodeyard.ts";

const RULES = join(import.meta.dirname, "../../../../packaging/monitoring/nodeyard.rules.yaml");
/** A page as Prometheus has it: values by series, and when it was read, seconds. */
interface Scrape {
  readonly at: number;
  readonly values: ReadonlyMap<string, number>;
}

const INSTANCE = 'job="nodeyard", instance="launcher-1:8005"';

function scrapeOf(text: string, used: (name: string) => boolean): Scrape {
  const values = new Map([[`up{${INSTANCE}}`, 1]]);
  for (const line of text.split("\n")) {
    const [, name, labels, value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name !== undefined && used(name))
      values.set(`${name}{${labels ? `${labels}, ` : ""}${INSTANCE}}`, Number(value));
  }
  return { at: Date.now() / 1000, values };
}

/** What Prometheus would have scraped, once a minute, had the process been as in each scrape for so many minutes. */
function inputOf(phases: readonly { readonly minutes: number; readonly scrape: Scrape }[]) {
  const names = new Set(phases.flatMap(({ scrape }) => [...scrape.values.keys()]));
  return [...names].map((series) => {
    let minute = 0;
    let before = false;
    const parts = phases.map(({ minutes, scrape }) => {
      const value = scrape.values.get(series);
      // Time begins with 0 in tests of rules.
      const shift = /^\w+_timestamp_seconds\{/.test(series) ? minute * 60 - scrape.at : 0;
      const gone = before ? `stale _x${minutes - 1}` : `_x${minutes}`;
      minute += minutes;
      before = value !== undefined;
      return value === undefined ? gone : `${(value + shift).toFixed(3)}x${minutes - 1}`;
    });
    return { series, values: parts.join(" ") };
  });
}

describe.skipIf(requirePromtool() ?? requireZooKeeper())("alerts on what a launcher serves", () => {
  let zookeeper: ZooKeeperServer;
  let site: Site;

  beforeAll(async () => {
    zookeeper = await startZooKeeper();
    site = new Site("");
  });
  afterAll(async () => {
    await site.close();
    await zookeeper.stop();
  });

  const provider = (name: string, fault: string) => `
  - name: ${name}
    driver: fake
    cloud: ${name}
    fake: {faults: {${fault}: -1}}
    cloud-images: [{name: debian, username: zuul}]
    pools:
      - name: main
        max-servers: 2
        labels: [{name: ${name}, cloud-image: debian, min-ram: 1024}]
`;

  test("fire for its troubles, and never for a process that is well", async () => {
    const { host, port } = zookeeper;
    const config = `zookeeper-servers: [{host: ${host}, port: ${port}}]
webapp: {listen_address: 127.0.0.1, port: 0}
labels: [{name: sticky}, {name: broken}]
providers:${provider("sticky", "delete-fails")}${provider("broken", "create-fails")}`;
    site.write(config);
    const launcher = site.start("-c", site.config, "launcher");
    await launcher.printed('"address":"http://');
    const address = /"address":"(http:\/\/[^"]+)"/.exec(launcher.err)![1]!;

    const rules = readFileSync(RULES, "utf8");
    const used = (name: string) => new RegExp(`\\b${name}\\b`).test(rules);
    const scrape = async () => scrapeOf((await ask(address, "/metrics")).text, used);
    /** The first scrape that has all of these series; a series is told by its name and some of its labels. */
    const once = async (
      ...wanted: readonly [start: string, value: number | undefined][]
    ): Promise<Scrape> => {
      for (let tries = 0; tries < 2_400 * patience(); tries++) {
        const seen = await scrape();
        const found = ([start, value]: readonly [string, number | undefined]) =>
          [...seen.values].some(([series, is]) => series.startsWith(start) && (value ?? is) === is);
        if (wanted.every(found)) return seen;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error(`it never was: ${JSON.stringify(wanted)}\n${launcher.err}`);
    };
    const well = await once(
      ["nodeyard_ready", 1],
      ["nodeyard_config_last_reload_successful", 1],
      ['nodeyard_standing{kind="provider",name="sticky",standing="good"', 1],
      ['nodeyard_standing{kind="provider",name="broken",standing="good"', 1],
    );

    const as = ["-c", site.config] as const;
    const { lease } = await site.json<{ lease: string }>(...as, "request", "sticky", "--wait");
    expect((await site.run(...as, "release", lease)).code).toBe(0);
    // The node that cannot be deleted takes one of two places: the request waits for it.
    await site.json(...as, "request", "sticky:2");
    await site.json(...as, "request", "broken:2");
    const old = { state: "ready", state_time: well.at - 4 * 86_400, external_id: "i", external_name: "n" };
    const build = "/nodepool/images/noble/builds/0123456789abcdef0123456789abcdef";
    const images = join(site.folder, "images.json");
    writeFileSync(
      images,
      JSON.stringify({
        [build]: JSON.stringify({
          state: "ready",
          state_time: old.state_time,
          builder: "b",
          formats: "raw",
        }),
        [`${build}/providers/sticky/images/0000000001`]: JSON.stringify(old),
      }),
    );
    expect((await site.run(...as, "import-image-data", images)).code).toBe(0);
    site.write("labels: [");
    const troubled = await once(
      ["nodeyard_config_last_reload_successful", 0],
      ["nodeyard_provider_oldest_deleting_timestamp_seconds", undefined],
      ['nodeyard_label_oldest_request_timestamp_seconds{label="sticky"', undefined],
      ['nodeyard_breaker_open{provider="broken"', 1],
      ["nodeyard_image_last_upload_timestamp_seconds", undefined],
    );
    await zookeeper.stop();
    const lost = await once(["nodeyard_tree_connected", 0]);
    await launcher.kill("SIGKILL");
    await expect(scrape()).rejects.toThrow();
    const gone: Scrape = { at: lost.at, values: new Map([[`up{${INSTANCE}}`, 0]]) };

    const minutes = [30, 90, 30, 5, 10, 30];
    const phases = [well, troubled, well, lost, gone, well].map((each, at) => ({
      minutes: minutes[at]!,
      scrape: each,
    }));
    const ends = minutes.map((_, at) => minutes.slice(0, at + 1).reduce((sum, each) => sum + each) - 1);
    const firing = [
      [],
      ["ReloadFailed", "NodesNotDeleted", "BreakerOpen", "RequestsWaiting", "ImageOld"],
      [],
      // A scrape keeps the troubles, of which some have not lasted long enough again.
      ["TreeDisconnected", "ReloadFailed"],
      ["Down"],
      [],
    ].map((names) => new Set(names.map((name) => `Nodeyard${name}`)));
    const file = join(site.folder, "real.test.yaml");
    writeFileSync(
      file,
      JSON.stringify({
        rule_files: [RULES],
        evaluation_interval: "1m",
        tests: [
          {
            interval: "1m",
            input_series: inputOf(phases),
            promql_expr_test: ends.map((end, at) => ({
              expr: 'count by (alertname) (ALERTS{alertstate="firing"}) > bool 0',
              eval_time: `${end}m`,
              exp_samples: [...firing[at]!].map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
            })),
          },
        ],
      }),
    );
    expect(execFileSync("promtool", ["test", "rules", file], { encoding: "utf8" })).toContain("SUCCESS");
  });
});
