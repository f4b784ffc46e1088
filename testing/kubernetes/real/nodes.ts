import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  accessOf,
  applyRoles,
  bindAll,
  failure,
  ID,
  INSTALLATION,
  type Named,
  NS,
  open,
  openshift,
  POD,
  RBAC,
  SHARED,
  SPACE,
  signal,
  site,
  tagOf,
  useCluster,
} from "../bench.ts";

useCluster();

describe("kubernetes", () => {
  test("a namespace, its account, role and binding; the record as Zuul reads it (check 25)", async () => {
    const { create } = await open("kubernetes", {
      ...SPACE,
      labels: { team: "qa" },
      "dynamic-labels": { t: "{request.tenant_name}" },
    });
    const machine = await create();
    const { metadata } = await site.api<Named>("GET", `/api/v1/namespaces/${NS}`);
    expect(metadata.labels).toMatchObject({
      nodepool_node_id: ID,
      nodepool_provider_name: "kube",
      nodepool_pool_name: "main",
      nodepool_node_label: "space",
      nodeyard_installation: INSTALLATION,
      team: "qa",
      t: "t1",
    });
    await site.api("GET", `/api/v1/namespaces/${NS}/serviceaccounts/zuul-worker`);
    await site.api("GET", `${RBAC}/namespaces/${NS}/roles/zuul`);
    expect(await site.api("GET", `${RBAC}/namespaces/${NS}/rolebindings/zuul-role`)).toMatchObject({
      roleRef: { kind: "Role", name: "zuul" },
      subjects: [{ kind: "ServiceAccount", name: "zuul-worker", namespace: NS }],
    });
    expect(machine).toMatchObject({
      externalId: NS,
      interfaceIp: null,
      cloud: "test",
      hostId: null,
      hostKeys: [],
    });
    expect(machine.access).toEqual({
      name: NS,
      namespace: NS,
      host: site.server,
      skiptls: false,
      token: expect.stringMatching(/^ey/),
      user: "zuul-worker",
      ca_crt: Buffer.from(site.ca).toString("base64"),
    });
  });

  test("a pod (check 26), with a spec as it is (check 29)", async () => {
    const spec = {
      containers: [{ name: "c", image: "i", command: ["sleep", "infinity"] }],
      hostNetwork: true,
    };
    const { create, label } = await open("kubernetes", {
      name: "raw",
      type: "pod",
      spec,
      annotations: { team: "ci" },
    });
    expect(label.connection.type).toBe("kubectl");
    const machine = await create();
    expect(machine).toMatchObject({
      interfaceIp: "raw",
      hostId: expect.stringMatching(/^node-/),
      cloud: "test",
    });
    expect(accessOf(machine)).toMatchObject({ pod: "raw", skiptls: false });
    const pod = await site.api<Named & { spec: object }>("GET", `/api/v1/namespaces/${NS}/pods/raw`);
    expect(pod.spec).toMatchObject({ ...spec, containers: [expect.objectContaining(spec.containers[0]!)] });
    expect(pod.metadata.annotations).toMatchObject({ team: "ci" });
    await site.api("GET", `${RBAC}/namespaces/${NS}/roles/zuul-restricted`);
  });

  test.each([
    ["image", "configuration", "ImagePullBackOff: Back-off pulling image: manifest unknown"],
    ["ends", "transient", "exit code 137 OOMKilled"],
  ])("a pod of which the kubelet says %s fails at once, with the reason", async (behaviour, kind, why) => {
    const { provider, create } = await open("kubernetes", { ...POD, annotations: { behaviour } });
    const outcome = create().then(
      async () => {
        // It was ready for a moment: its end is seen by the next list.
        await site.until("the end is listed", async () =>
          (await provider.list(signal)).some(({ ended }) => ended),
        );
        return undefined;
      },
      (error: unknown) => error,
    );
    const error = await outcome;
    if (error === undefined) return expect(behaviour).toBe("ends");
    expect(error).toMatchObject({ kind });
    expect(String(error)).toContain(why);
  });

  test("a cluster without room is a lack of capacity, in the scheduler's words", async () => {
    const { create } = await open("kubernetes", { ...POD, cpu: 64 });
    const error = await failure(create());
    expect(error.kind).toBe("capacity");
    expect(error.message).toMatch(/cannot be scheduled: .*Insufficient cpu/);
  });

  test("a ready pod that was evicted is listed as ended, and not handed out", async () => {
    const { provider, create } = await open("kubernetes", POD);
    const { externalId } = await create();
    await provider.offers!.handover!.ready(tagOf(ID), { signal, externalId });
    await site.api("DELETE", `/api/v1/namespaces/${NS}/pods/small`);
    await site.until("it is listed as ended", async () =>
      (await provider.list(signal)).some(({ ended }) => ended),
    );
  });

  test("leaks are found by the installation's id; a namespace of the same name is left alone (check 31)", async () => {
    await site.api("POST", "/api/v1/namespaces", {
      metadata: { name: NS, labels: { nodepool_node_id: ID } },
    });
    const { provider, create, remove } = await open("kubernetes", POD);
    const { externalId } = await create();
    expect(externalId).toMatch(new RegExp(`^${NS}-n[0-9a-f]{8}$`));
    const ours = (await provider.list(signal)).filter(({ tag }) => tag !== null);
    expect(ours).toMatchObject([{ type: "instance", id: externalId, tag: tagOf(ID) }]);
    await provider.removeResource(ours[0]!, signal);
    await remove();
    expect((await site.call("GET", `/api/v1/namespaces/${externalId}`, "admin-token")).status).toBe(404);
    await site.api("GET", `/api/v1/namespaces/${NS}`);
  });

  test("tokens of a secret, where they are asked for (check 25)", async () => {
    const { create } = await open("kubernetes", SPACE, { provider: { "token-lifetime": 0 } });
    const { token } = accessOf(await create());
    expect(JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString())).not.toHaveProperty("exp");
    const secret = await site.api<Named & { type: string }>(
      "GET",
      `/api/v1/namespaces/${NS}/secrets/zuul-worker`,
    );
    expect(secret.type).toBe("kubernetes.io/service-account-token");
  });

  test("a bounded token: no longer than asked, new before a ready node is handed out late", async () => {
    const { provider, create } = await open("kubernetes", SPACE, { own: { tokenMs: 4_000 } });
    const machine = await create();
    const claims = (token: string) => JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString());
    const { exp, iat } = claims(accessOf(machine).token);
    expect(exp - iat).toBe(600);
    const step = { signal, externalId: machine.externalId };
    // A quarter of its four seconds has passed.
    await site.until(
      "it is renewed",
      async () => (await provider.offers!.handover!.access!(tagOf(ID), step)) !== undefined,
    );
    const renewed = await provider.offers!.handover!.access!(tagOf(ID), step);
    expect(renewed).toMatchObject({ namespace: NS, token: expect.stringMatching(/^ey/) });
  });
});

test("six calls for a pod's whole life, beside the watches, with no more than the rights of the page", async () => {
  await applyRoles();
  await bindAll("nodeyard-launcher", { kind: "User", name: "launcher" });
  const { create, remove } = await open("kubernetes", POD, {}, "launcher");
  // The first also finds out that the cluster has roles for jobs.
  await create("0000000001");
  const before = site.audit().length;
  await create();
  await remove();
  const calls = site
    .audit()
    .slice(before)
    .filter(({ user, verb }) => user === "launcher" && verb !== "watch");
  expect(calls.map(({ verb, uri, code }) => `${verb} ${uri.replaceAll(NS, "*")} ${code}`).sort()).toEqual([
    "create /api/v1/namespaces 201",
    "create /api/v1/namespaces/*/pods 201",
    "create /api/v1/namespaces/*/serviceaccounts 201",
    "create /api/v1/namespaces/*/serviceaccounts/zuul-worker/token 201",
    `create ${RBAC}/namespaces/*/rolebindings 201`,
    "delete /api/v1/namespaces/* 200",
  ]);
});

test.each([
  ["kubernetes", POD, {}],
  ["openshift", POD, {}],
  // There the key stays, as with Nodepool.
  ["openshiftpods", SHARED, { ca_crt: null }],
] as const)(
  "%s: where certificates are not checked, the record has none (check 33)",
  async (kind, label, ca) => {
    if (kind === "openshiftpods") await site.project("main");
    const from = kind === "openshift" ? openshift.kubeconfig("admin") : site.kubeconfig("admin");
    const insecure = JSON.parse(readFileSync(from, "utf8"));
    const { server } = insecure.clusters[0].cluster;
    insecure.clusters[0].cluster = { server, "insecure-skip-tls-verify": true };
    const kubeconfig = `${from}.insecure`;
    writeFileSync(kubeconfig, JSON.stringify(insecure));
    const { create } = await open(kind, label, { kubeconfig });
    const { skiptls, ca_crt, ...rest } = accessOf(await create());
    expect([skiptls, rest.host]).toEqual([true, server]);
    expect(ca_crt === undefined ? {} : { ca_crt }).toEqual(ca);
  },
);

/** Both ways in which a pod is evicted: by a kubelet that lacks memory, and by the API of `kubectl drain` and of autoscalers. */
describe.each([
  ["kubernetes", POD],
  ["openshift", POD],
  ["openshiftpods", SHARED],
] as const)("a pod of %s that is evicted before it is ready fails the launch at once", (kind, label) => {
  const evictions: readonly (readonly [string, (path: string) => Promise<unknown>, string])[] = [
    [
      "by its kubelet",
      (path) =>
        site.api("PATCH", `${path}/status`, {
          status: { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." },
        }),
      "it failed: Evicted: The node was low on resource: memory.",
    ],
    [
      "by the eviction API",
      (path) =>
        site.api("POST", `${path}/eviction`, {
          apiVersion: "policy/v1",
          kind: "Eviction",
          metadata: { name: path.slice(path.lastIndexOf("/") + 1) },
        }),
      "it was deleted before it was ready: EvictionByEvictionAPI: Eviction API: evicting",
    ],
  ];
  test.each(evictions)("%s", async (_, evict, why) => {
    if (kind === "openshiftpods") await site.project("main");
    const { create } = await open(kind, { ...label, annotations: { behaviour: "never" } });
    const failed = failure(create());
    const path =
      kind === "openshiftpods"
        ? `/api/v1/namespaces/main/pods/small-${ID}`
        : `/api/v1/namespaces/${NS}/pods/small`;
    await site.until("a machine is found for it", async () => {
      const { status, text } = await site.call("GET", path, "admin-token");
      return status === 200 && JSON.parse(text).spec.nodeName !== undefined;
    });
    await evict(path);
    // Another attempt may help, so that it is not the timeout of 300 s that ends this one.
    expect(await failed).toMatchObject({ kind: "transient", message: expect.stringContaining(why) });
  });
});

describe("openshift", () => {
  const project = { name: "space", type: "project" };

  test("a project that is asked for, with role edit; labels or not, it is ours (checks 31, 35)", async () => {
    const { provider, create, remove } = await open("openshift", { ...POD, cpu: 1 });
    const machine = await create();
    expect(await site.api("GET", `${RBAC}/namespaces/${NS}/rolebindings/zuul-role`)).toMatchObject({
      roleRef: { name: "edit" },
    });
    const pod = await site.api<Named & { spec: object }>("GET", `/api/v1/namespaces/${NS}/pods/small`);
    expect(pod.metadata.labels).toMatchObject({ nodepool_node_id: ID });
    expect(accessOf(machine)).toMatchObject({ namespace: NS, pod: "small", host: openshift.server });
    // Nodepool leaves it empty.
    expect(machine.hostId).toMatch(/^node-/);
    expect(accessOf(machine)).not.toHaveProperty("name");
    const ours = (await provider.list(signal)).filter(({ tag }) => tag !== null);
    expect(ours).toMatchObject([
      { type: "instance", id: NS, tag: tagOf(ID), resources: { cores: 1, instances: 1 } },
    ]);
    await remove();
    expect((await site.call("GET", `/api/v1/namespaces/${NS}`, "admin-token")).status).toBe(404);
  });

  test("a project without a pod", async () => {
    const { create, label } = await open("openshift", project);
    expect(label.connection.type).toBe("project");
    expect(accessOf(await create())).not.toHaveProperty("pod");
  });
});
