import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { fakeConfig, Running, Site } from "../cli/nodeyard.ts";

interface Collected {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

/** A collector of traces that keeps them, and tells of each batch. */
async function collector() {
  const spans: Collected[] = [];
  const services = new Set<string>();
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
      services.add(JSON.stringify(resource.attributes.find(({ key }) => key === "service.name")?.value));
      spans.push(...scopeSpans.flatMap((scope) => scope.spans));
    }
    response.setHeader("content-type", "application/json").end("{}");
    heard.resolve();
    heard = Promise.withResolvers<void>();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return {
    spans,
    services,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async until(look: () => boolean) {
      while (!look()) await heard.promise;
    },
  };
}

test("a request is one trace: its wait, its nodes, and in them the driver's steps", async () => {
  const { spans, services, endpoint, until } = await collector();
  const site = new Site(fakeConfig({ latency: "{boot: 50}" }));
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };
  const up = new Running(["--state", site.state, "-c", site.config, "up", "--no-webapp"], env);
  onTestFinished(async () => {
    await up.kill("SIGKILL");
    await site.close();
  });
  await up.told("Nodeyard is up");
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
  const textOf = ({ attributes }: Collected, wanted: string) =>
    (attributes.find(({ key }) => key === wanted)?.value as { stringValue?: string } | undefined)
      ?.stringValue;
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
  expect([...services]).toEqual(['{"stringValue":"nodeyard"}']);
});
