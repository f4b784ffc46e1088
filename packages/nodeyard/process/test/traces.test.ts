import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { SOURCE } from "../../../../testing/program.ts";
import { Machine } from "../../../../testing/slivers/index.ts";
import { fakeConfig, Running, Site } from "../../cli/test/nodeyard.ts";

interface Collected {
  /** The `service.name` of its sender. */
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

function textOf({ attributes }: Pick<Collected, "attributes">, wanted: string): string | undefined {
  const value = attributes.find(({ key }) => key === wanted)?.value;
  return (value as { stringValue?: string } | undefined)?.stringValue;
}

// From source, beside which OpenTelemetry is installed: who wants traces installs it beside the program (docs/how-to/watch-with-prometheus.md).

/** A collector of traces that keeps them, and tells of each batch. */
async function collector() {
  const spans: Collected[] = [];
  let heard = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const { resourceSpans } = JSON.parse(text) as {
      resourceSpans: {
        resource: { attributes: Collected["attributes"] };
        scopeSpans: { spans: Collected[] }[];
      }[];
    };
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = textOf(resource, "service.name")!;
      spans.push(...scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ ...span, service }))));
    }
    response.setHeader("content-type", "application/json").end("{}");
    heard.resolve();
    heard = Promise.withResolvers<void>();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return {
    spans,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async until(look: () => boolean) {
      while (!look()) await heard.promise;
    },
  };
}

test("a request is one trace: its wait, its nodes, and in them the driver's steps", async () => {
  const { spans, endpoint, until } = await collector();
  const site = new Site(fakeConfig({ latency: "{boot: 50}" }));
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };
  const up = new Running(["--state", site.state, "-c", site.config, "up", "--no-webapp"], env, [], SOURCE);
  onTestFinished(async () => {
    await up.kill("SIGKILL");
    await site.close();
  });
  await up.printed("Nodeyard is up");
  const { request, nodes } = await site.json<{ request: string; nodes: { id: string }[] }>(
    "request",
    "small:2",
    "--wait",
  );
  // What is left is sent at the end.
  expect((await up.kill("SIGTERM")).code).toBe(0);
  await until(() => spans.some(({ name }) => name === "request"));
  const root = spans.find(({ name }) => name === "request")!;
  const of = (parent: Collected) => spans.filter(({ parentSpanId }) => parentSpanId === parent.spanId);
  expect(textOf(root, "request")).toBe(request);
  expect(
    of(root)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(["launch small", "launch small", "wait for a pool"]);
  const launches = of(root).filter(({ name }) => name === "launch small");
  expect(launches.map((launch) => textOf(launch, "node")).sort()).toEqual(nodes.map(({ id }) => id).sort());
  for (const launch of launches)
    expect(of(launch).map(({ name }) => name)).toEqual(expect.arrayContaining(["launch: find"]));
  const ours = [root, ...of(root), ...launches.flatMap(of)];
  expect(new Set(ours.map(({ traceId }) => traceId)).size).toBe(1);
  expect(new Set(ours.map(({ spanId }) => spanId)).size).toBe(ours.length);
  for (const { startTimeUnixNano, endTimeUnixNano, name } of ours)
    expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano), name).toBe(true);
  expect(new Set(spans.map(({ service }) => service))).toEqual(new Set(["nodeyard"]));
});

test("a sliver manager's steps are part of the launch in the same trace; without a collector of its own it sends nothing", async () => {
  const { spans, endpoint, until } = await collector();
  const machine = new Machine();
  const quiet = new Machine("machine-2", "memory", {}, machine);
  const provider = (name: string, label: string, { name: node, socket }: Machine) => ({
    ...{ name, driver: "sliver", "signing-keys": machine.keysFile, machines: [{ name: node, socket }] },
    pools: [
      { name: "main", labels: [{ name: label, "cpu-guarantee": 100, disk: 64, "host-key-checking": false }] },
    ],
  });
  const labels = [{ name: "traced" }, { name: "quiet" }];
  const providers = [provider("lab", "traced", machine), provider("other", "quiet", quiet)];
  const site = new Site(JSON.stringify({ labels, providers }));
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };
  onTestFinished(() => Promise.all([machine.stop(), quiet.stop()]).then(() => {}));
  await Promise.all([machine.start({}, env), quiet.start()]);
  const up = new Running(["--state", site.state, "-c", site.config, "up", "--no-webapp"], env, [], SOURCE);
  onTestFinished(async () => {
    await up.kill("SIGKILL");
    await site.close();
  });
  await up.printed("Nodeyard is up");
  for (const label of ["traced", "quiet"]) await site.json("request", label, "--wait");
  // What is left is sent at the end.
  await Promise.all([up.kill("SIGTERM"), machine.kill("SIGTERM"), quiet.kill("SIGTERM")]);
  await until(() => spans.some(({ name }) => name === "sliver: start"));
  await until(() => spans.filter(({ name }) => name === "request").length === 2);
  const launch = spans.find(({ name }) => name === "launch traced")!;
  const steps = spans.filter(({ service }) => service === "sliverd");
  expect(steps.map(({ name }) => name)).toEqual(["sliver: create", "sliver: configure", "sliver: start"]);
  for (const step of steps) {
    expect([step.traceId, step.parentSpanId], step.name).toEqual([launch.traceId, launch.spanId]);
    expect(textOf(step, "sliver_host")).toBe("machine-1");
  }
});
