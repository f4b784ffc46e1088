import {
  imageMetadata,
  leaked,
  listedResources,
  machineMetadata,
  memoryEvidence,
  type Resource,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import { expect, test } from "vitest";
import type { FloatingIp, Image, Port, Server, Volume } from "../src/api/index.ts";
import { serverSchema } from "../src/api/kinds.ts";
import { floatingIpPart, imagePart, portPart, volumePart } from "../src/leaks.ts";
import { markOf, tagOfMark } from "../src/tags.ts";

const tag = (nodeId: string, more: Partial<Tag> = {}): Tag => ({
  installation: "ours",
  provider: "cloud/a",
  pool: "main",
  nodeId,
  ...more,
});
const server = (id: string, metadata: Record<string, string>) =>
  serverSchema.parse({ id, status: "ACTIVE", metadata, flavor: { vcpus: 2, ram: 512 } });
const port = (id: string, device_id: string, more: object = {}) => ({
  id,
  status: "DOWN",
  device_id,
  device_owner: "compute:nova",
  network_id: "n",
  fixed_ips: [],
  ...more,
});
const ip = (id: string, description: string, port_id: string | null = null) => ({
  id,
  floating_ip_address: "198.51.100.7",
  description,
  port_id,
});
const volume = (id: string, more: object = {}) => ({
  id,
  status: "available",
  size: 10,
  attachments: [],
  ...more,
});

interface Inventory {
  readonly servers: readonly Server[];
  readonly ports: readonly Port[];
  readonly floatingIps: readonly FloatingIp[];
  readonly volumes: readonly Volume[];
  readonly images: readonly Image[];
}

function listed(more: Partial<Inventory>, evidence = memoryEvidence(), cleans = true): readonly Resource[] {
  const { servers = [], ports = [], floatingIps = [], volumes = [], images = [] } = more;
  const parts = [
    ...ports.map((one) => ({ type: "port", ...portPart(one, evidence, cleans) })),
    ...floatingIps.map((one) => ({ type: "floatingip", ...floatingIpPart(one) })),
    ...volumes.map((one) => ({ type: "volume", ...volumePart(one, evidence) })),
    ...images.flatMap(imagePart).map((one) => ({ type: "image", ...one })),
  ];
  return listedResources(servers, parts, {
    idOf: ({ id }) => id,
    metadataOf: ({ metadata }) => metadata,
    amounts: () => ({ instances: 1, cores: 2, ram: 512 }),
  });
}
const tags = (resources: readonly Resource[]) =>
  resources.map(({ id, tag: own }) => [id, own?.nodeId ?? null]);

test("a tag survives metadata and mark, whatever the names are", () => {
  for (const provider of ["cloud", "a/b c", "%2F", "nodeyard"]) {
    const odd = tag("0000000001", { provider });
    expect(tagOf(machineMetadata(odd))).toEqual(odd);
    expect(tagOfMark(markOf(odd))).toEqual(odd);
  }
  for (const mark of [
    null,
    "",
    "hello",
    "nodeyard/a/b/c",
    "nodeyard/a/b/c/d/e",
    "nodeyard/%/b/c/d",
    "nodeyard//b/c/d",
  ])
    expect(tagOfMark(mark)).toBeNull();
  expect(() => markOf(tag("1", { provider: "x".repeat(300) }))).toThrow("too long");
});

test("ports and floating IPs count with their server; what has none counts alone", () => {
  const servers = [server("s", machineMetadata(tag("0000000001")))];
  const ports = [
    port("p", "s"),
    port("q", "s"),
    port("r", "router", { device_owner: "network:router_gateway" }),
  ];
  const floatingIps = [ip("on", markOf(tag("0000000001")), "p"), ip("theirs", "", "r"), ip("loose", "")];
  const found = new Map(listed({ servers, ports, floatingIps }).map(({ id, resources }) => [id, resources]));
  const machine = { instances: 1, cores: 2, ram: 512, ports: 2, "floating-ips": 1 };
  const alone = [
    ["r", { ports: 1 }],
    ["theirs", { "floating-ips": 1 }],
    ["loose", { "floating-ips": 1 }],
  ] as const;
  expect(found).toEqual(new Map<unknown, unknown>([["s", machine], ...alone]));
});

test("a server of a Python launcher, or with half a tag, has no known owner", () => {
  const whole = machineMetadata(tag("0000000001"));
  for (const key of Object.keys(whole)) {
    const { [key]: _, ...rest } = whole;
    expect(tags(listed({ servers: [server("s", rest)] }))).toEqual([["s", null]]);
  }
});

test("a port is ours by its server, once that is gone, only while it is down", () => {
  const evidence = memoryEvidence();
  evidence.record("instance", "gone", tag("0000000001"));
  evidence.record("instance", "there", tag("0000000002"));
  const ports = [
    port("a", "gone"),
    port("b", "gone", { status: "ACTIVE" }),
    port("c", "gone", { device_owner: "network:dhcp" }),
    port("d", "there"),
    port("e", "theirs"),
    port("f", ""),
  ];
  const servers = [server("there", machineMetadata(tag("0000000002")))];
  const found = listed({ ports, servers }, evidence).filter(({ type }) => type === "port");
  expect(tags(found)).toEqual([
    ["a", "0000000001"],
    ["b", null],
    ["c", null],
    ["e", null],
    ["f", null],
  ]);
  expect(tags(listed({ ports: ports.slice(0, 1) }, evidence, false))).toEqual([["a", null]]);
});

test("a floating IP that no server has is ours by its mark", () => {
  const servers = [server("s", machineMetadata(tag("0000000001")))];
  const ports = [port("p", "s"), port("q", "other")];
  const floatingIps = [
    ip("used", markOf(tag("0000000001")), "p"),
    ip("loose", markOf(tag("0000000001"))),
    ip("taken", markOf(tag("0000000002")), "q"),
    ip("theirs", "kept for the mail server"),
  ];
  const found = listed({ servers, ports, floatingIps }).filter(({ type }) => type === "floatingip");
  expect(tags(found)).toEqual([
    ["loose", "0000000001"],
    ["taken", null],
    ["theirs", null],
  ]);
});

test("a volume is ours when it was seen on a server of ours, once it is free; all count against the quota", () => {
  const evidence = memoryEvidence();
  evidence.record("volume", "left", tag("0000000001"));
  evidence.record("volume", "busy", tag("0000000001"));
  const on = (server_id: string) => ({ status: "in-use", attachments: [{ server_id }] });
  const servers = [server("s", machineMetadata(tag("0000000002")))];
  const volumes = [
    volume("left"),
    volume("busy", on("elsewhere")),
    volume("root", on("s")),
    volume("theirs"),
  ];
  const found = listed({ servers, volumes }, evidence);
  expect(tags(found)).toEqual([
    ["s", "0000000002"],
    ["left", "0000000001"],
    ["busy", null],
    ["theirs", null],
  ]);
  expect(found[0]?.resources).toEqual({ instances: 1, cores: 2, ram: 512, volumes: 1, "volume-gb": 10 });
  expect(found[3]?.resources).toEqual({ volumes: 1, "volume-gb": 10 });
});

test("an image shows its own tag, and only with all of it", () => {
  const imageTag = {
    installation: "ours",
    provider: "cloud",
    image: "noble",
    buildId: "b",
    uploadId: "0000000001",
  };
  const properties = imageMetadata(imageTag);
  const { nodeyard_installation, ...older } = properties;
  const images = [
    { id: "i", status: "active", ...properties },
    { id: "python", status: "active", ...older },
  ];
  expect(nodeyard_installation).toBe("ours");
  expect(listed({ images })).toEqual([{ type: "image", id: "i", tag: null, imageTag, resources: {} }]);
});

test("a neighbour's look-alikes in the same project are never chosen for deletion", () => {
  const evidence = memoryEvidence();
  evidence.record("instance", "gone", tag("0000000003", { installation: "theirs" }));
  const servers = [
    server("mine", machineMetadata(tag("0000000001"))),
    server("installation", machineMetadata(tag("0000000001", { installation: "theirs" }))),
    server("provider", machineMetadata(tag("0000000001", { provider: "other" }))),
    server("python", { nodepool_node_id: "0000000001", nodepool_provider_name: "cloud/a" }),
    server("np0000000001", {}),
  ];
  const floatingIps = [
    ip("x", markOf(tag("0000000001", { installation: "theirs" }))),
    ip("y", "np0000000001"),
  ];
  const all = listed({ servers, floatingIps, ports: [port("p", "gone")], volumes: [volume("v")] }, evidence);
  const look = (previous: ReadonlySet<string>) =>
    leaked(all, new Set<string>(), { installation: "ours", provider: "cloud/a", previous });
  expect(look(look(new Set()).suspects).remove.map(({ id }) => id)).toEqual(["mine"]);
});
