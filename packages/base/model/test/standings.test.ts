import { describe, expect, test } from "vitest";
import {
  decodeStandings,
  encodeStandings,
  newComponent,
  type StandingFact,
  type StandingFacts,
  standingFact,
  standingsOf,
} from "../src/index.ts";

const open = (name: string, labels: readonly string[]) =>
  standingFact("provider", name, "good", "provider.served", { labels });
const closed = (name: string, labels: readonly string[], cause = "401 from the cloud") =>
  standingFact("provider", name, "failing", "provider.failing", { labels, cause, since: 5, nextTry: 9 });
const host = (name: string, labels: readonly string[], cause?: string) =>
  standingFact(
    "host",
    `lab/${name}`,
    cause === undefined ? "good" : "failing",
    cause ? "host.silent" : "host.registered",
    {
      provider: "lab",
      labels,
      cause: cause ?? null,
    },
  );

function judge(
  reports: Readonly<Record<string, readonly StandingFact[]>>,
  more: Partial<StandingFacts> = {},
) {
  const all = Object.entries(reports).map(([hostname, facts]) => ({ hostname, facts, leftOut: 0 }));
  const standings = standingsOf({ reports: all, components: [], nodes: new Map(), images: [], ...more });
  return (id: string) => standings.find((one) => one.id === id);
}

describe("one standing from what members report", () => {
  test("a provider that one launcher serves and another cannot open is degraded, and says who cannot and why", () => {
    const of = judge({ a: [open("kube", ["pod"])], b: [closed("kube", ["pod"])] });
    expect(of("provider/kube")).toMatchObject({
      state: "degraded",
      code: "provider.failing",
      cause: "401 from the cloud",
      since: 5,
      nextTry: 9,
      members: ["b"],
    });
  });

  test("a label that only a closed provider offers is failing, with that provider's cause and a link to it", () => {
    const of = judge({ a: [closed("kube", ["pod"]), open("other", ["quick"])] });
    expect(of("label/pod")).toMatchObject({
      state: "failing",
      code: "label.unserved",
      cause: "401 from the cloud",
      because: "provider/kube",
      nextTry: 9,
    });
    expect(of("label/quick")).toMatchObject({ state: "good", cause: null, because: null });
  });

  test("hosts decide about their labels, and all of them together about the provider", () => {
    const hosts = [host("one", ["board"], "ECONNREFUSED"), host("two", ["board", "arm"])];
    const some = judge({ a: [open("lab", ["board", "arm"]), ...hosts] });
    expect(some("label/board")).toMatchObject({
      state: "degraded",
      cause: "ECONNREFUSED",
      because: "host/lab/one",
    });
    expect(some("label/arm")?.state).toBe("good");
    expect(some("provider/lab")?.state).toBe("good");
    const none = judge({ a: [open("lab", ["board"]), hosts[0]!] });
    const each = judge({
      a: [
        open("lab", ["board", "arm"]),
        host("one", ["board"], "ECONNREFUSED"),
        host("two", ["arm"], "ENOTFOUND"),
      ],
    });
    expect(each("label/arm")).toMatchObject({ cause: "ENOTFOUND", because: "host/lab/two" });
    expect(none("provider/lab")).toMatchObject({ state: "failing", because: "host/lab/one" });
    expect(none("label/board")).toMatchObject({ state: "failing", cause: "ECONNREFUSED" });
  });

  test("a provider that is just opening is unknown, and decides nothing beside one that is known", () => {
    const opening = (name: string) =>
      standingFact("provider", name, "unknown", "provider.opening", { labels: ["pod"] });
    expect(judge({ a: [opening("kube")] })("label/pod")?.state).toBe("unknown");
    expect(judge({ a: [opening("kube")], b: [open("kube", ["pod"])] })("provider/kube")?.state).toBe("good");
  });

  test("a label that no pool offers is failing, unless another launcher has a pool with it", () => {
    const lonely = standingFact("label", "lost", "failing", "label.no-pool");
    expect(judge({ a: [lonely] })("label/lost")).toMatchObject({ state: "failing", code: "label.no-pool" });
    expect(judge({ a: [lonely], b: [open("cloud", ["lost"])] })("label/lost")?.state).toBe("good");
  });

  test("nodes of a provider that is in no configuration; a Python launcher's pool is one", () => {
    const pool = newComponent({
      kind: "pool",
      hostname: "old",
      state: "running",
      providerName: "python",
      supportedLabels: ["jammy"],
    });
    const of = judge(
      {},
      {
        nodes: new Map([
          ["gone", 2],
          ["python", 3],
        ]),
        components: [pool],
      },
    );
    expect(of("provider/gone")).toMatchObject({
      state: "failing",
      code: "provider.left",
      cause: "2 nodes are left of it",
    });
    expect(of("provider/python")?.state).toBe("good");
    expect(of("label/jammy")?.state).toBe("good");
  });
});

test("a report that is too long leaves out what is good and counts it; what this release does not know is skipped", () => {
  const facts = [...Array(50)].map((_, at) => host(`h${at}`, ["board"], at === 49 ? "dead" : undefined));
  const read = decodeStandings(encodeStandings({ hostname: "a", facts, leftOut: 0 }, 2_000));
  expect(read.facts[0]?.cause).toBe("dead");
  expect(read.facts.length + read.leftOut).toBe(50);
  expect(read.leftOut).toBeGreaterThan(0);
  const odd = Buffer.from(
    JSON.stringify({ v: 1, hostname: "a", facts: [{ kind: "comet" }, facts[0]], left_out: 0 }),
  );
  expect(decodeStandings(odd).facts).toEqual([facts[0]]);
  expect(decodeStandings(Buffer.from("{"))).toEqual({ hostname: "", facts: [], leftOut: 0 });
});
