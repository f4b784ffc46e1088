import { expect, test } from "vitest";
import type { OpenstackOrder } from "../../src/config.ts";
import { openstackConfig } from "../../src/index.ts";
import { serverBody } from "../../src/machines/server-body.ts";

function bodyOf(
  label: object = {},
  pool: object = {},
  more: Partial<OpenstackOrder> = {},
  networkIds = ["net"],
) {
  const warned: object[] = [];
  const raw = {
    name: "cloud",
    "cloud-images": [{ name: "noble", ...("config-drive" in label ? { "config-drive": false } : {}) }],
    pools: [
      {
        name: "main",
        labels: [{ name: "small", "cloud-image": "noble", "flavor-name": "f", ...label }],
        ...pool,
      },
    ],
  };
  const report = ({ message }: { message: string }) => {
    throw new Error(message);
  };
  const config = openstackConfig.load(raw, { labels: new Set(["small"]), diskimages: new Map(), report })!;
  const order = {
    tag: { installation: "i", provider: "cloud", pool: "main", nodeId: "0000000007" },
    hostname: "np0000000007",
    pool: config.pools[0]!,
    label: config.pools[0]!.labels.get("small")!,
    az: null,
    request: { id: "100-1", tenantName: null, labels: ["small"] },
    ...more,
  } as unknown as OpenstackOrder;
  const log = { warn: (facts: object) => void warned.push(facts) };
  const resolved = { flavorId: "1", imageId: "img", networkIds, microversion: "2.79" };
  return { body: serverBody(order, resolved, log) as Record<string, unknown>, warned };
}

test("the least that is sent: nothing that is not configured", () => {
  expect(bodyOf().body).toEqual({
    name: "np0000000007",
    flavorRef: "1",
    imageRef: "img",
    min_count: 1,
    max_count: 1,
    networks: [{ uuid: "net" }],
    metadata: {
      groups: "cloud,noble,small",
      nodepool_node_id: "0000000007",
      nodepool_pool_name: "main",
      nodepool_provider_name: "cloud",
      nodeyard_installation: "i",
    },
  });
  expect(bodyOf({}, {}, {}, []).body.networks).toBe("auto");
});

test("properties: templates over constants, the tag over both; a template that fails costs only itself", () => {
  const { body, warned } = bodyOf({
    "instance-properties": { team: "qa", t: "old", nodepool_node_id: "0000000001", n: 7 },
    "dynamic-instance-properties": { t: "Tenant is {request.tenant_name}", bad: "{request.nope}" },
  });
  expect(body.metadata).toMatchObject({
    team: "qa",
    n: "7",
    t: "Tenant is None",
    nodepool_node_id: "0000000007",
  });
  expect(body.metadata).not.toHaveProperty("bad");
  expect(warned).toEqual([expect.objectContaining({ property: "bad" })]);
});

test("volume, key, user data, groups, zone and a config drive that is switched off", () => {
  const label = { "boot-from-volume": true, "volume-size": 10, "key-name": "k", userdata: "#cloud-config" };
  const { body } = bodyOf({ ...label }, { "security-groups": ["a", "b"] }, { az: "az1" });
  expect(body).toMatchObject({
    imageRef: "",
    block_device_mapping_v2: [
      {
        boot_index: "0",
        uuid: "img",
        source_type: "image",
        destination_type: "volume",
        volume_size: "10",
        delete_on_termination: true,
      },
    ],
    key_name: "k",
    user_data: "I2Nsb3VkLWNvbmZpZw==",
    security_groups: [{ name: "a" }, { name: "b" }],
    availability_zone: "az1",
  });
});
