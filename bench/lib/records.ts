/** Records as foreign programs write them: plain JSON, on purpose without our own model. */

/** The label that the scenarios request. */
export const LABEL = "bench";
/** A label of the same pool that nobody requests. */
export const IDLE_LABEL = "bench-idle";
/** A label that only another launcher's pool serves. */
export const FOREIGN_LABEL = "bench-elsewhere";
/** The provider of that pool. */
export const FOREIGN_PROVIDER = "bench-elsewhere";

/** The tenant of requests, and one that may have a single node (`BenchConfig.waits`). */
const TENANT = "bench-tenant";
export const WAITING_TENANT = "bench-waiting";

/** A request of one node as Zuul writes it (no `reuse`, no `nodes`). `at` is in seconds. */
export function zuulRequest(label: string, at: number, number: number, tenant = TENANT): Buffer {
  const hex = (size: number) => number.toString(16).padStart(size, "0");
  return json({
    requestor_data: {
      build_set_uuid: hex(32),
      tenant_name: tenant,
      pipeline_name: "check",
      job_uuid: hex(32),
      job_name: "nodeyard-bench-unit-tests",
      span_info: null,
    },
    node_types: [label],
    requestor: "9c1e0f5bd0c24a7f9b3c5d7e1f2a4b6c",
    created_time: at,
    provider: null,
    state: "requested",
    state_time: at,
    relative_priority: 0,
    event_id: hex(32),
    tenant_name: tenant,
  });
}

/** An idle node that an earlier launcher made, of our pool or of another launcher's; `user`: what its user has written. */
export function idleNode(
  label: string,
  at: number,
  number: number,
  provider = "fake-bench",
  user: object = {},
): Buffer {
  return json({
    state: "ready",
    state_time: at,
    provider,
    pool: "main",
    type: [label],
    launcher: "earlier-launcher-PoolWorker.fake-bench-main-00000000000000000000000000000000",
    allocated_to: null,
    tenant_name: null,
    requestor: null,
    created_time: at,
    cloud: "bench",
    region: null,
    az: "az1",
    host_id: null,
    external_id: `machine-${number}`,
    hostname: null,
    public_ipv4: "fake",
    private_ipv4: "fake",
    public_ipv6: "",
    interface_ip: "fake",
    connection_type: "ssh",
    connection_port: 22,
    ssh_port: 22,
    username: "zuul",
    python_path: "auto",
    shell_type: null,
    host_keys: ["ssh-rsa FAKEKEY"],
    image_id: "bench-image",
    attributes: null,
    resources: { cores: 4, instances: 1, ram: 8192 },
    slot: null,
    driver_data: null,
    user_data: null,
    comment: null,
    hold_job: null,
    hold_expiration: null,
    ...user,
  });
}

/** Records of the floor: as long as the real ones. */
export const REQUEST_BYTES = zuulRequest(LABEL, 1_700_000_000.25, 1);
export const NODE_BYTES = idleNode(LABEL, 1_700_000_000.25, 1);

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
