import { describe, expect, test } from "vitest";
import {
  type Access,
  accessOf,
  failure,
  ID,
  lines,
  type Named,
  open,
  RBAC,
  SHARED,
  signal,
  site,
  useCluster,
} from "../bench.ts";

useCluster();

describe("openshiftpods", () => {
  const quota = async (hard: object) => {
    await site.api("POST", "/api/v1/namespaces/main/resourcequotas", {
      metadata: { name: "q" },
      spec: { hard },
    });
    await site.until("the quota counts", async () => {
      const { status } = await site.api<{ status?: { hard?: object } }>(
        "GET",
        "/api/v1/namespaces/main/resourcequotas/q",
      );
      return status?.hard !== undefined;
    });
  };

  test("a pod in the pool's project; its removal removes that pod alone (check 36)", async () => {
    await site.project("main");
    await site.project("main-x");
    const { create, remove } = await open("openshiftpods", SHARED);
    const [one, two] = [await create(), await create("0000000043")];
    expect(one).toMatchObject({ externalId: `main-small-${ID}`, interfaceIp: `small-${ID}` });
    expect(accessOf(two)).toMatchObject({
      namespace: "main",
      pod: "small-0000000043",
      ca_crt: expect.any(String),
    });
    await remove();
    const { items } = await site.api<{ items: Named[] }>("GET", "/api/v1/namespaces/main/pods");
    expect(items.map(({ metadata }) => metadata.name)).toEqual(["small-0000000043"]);
  });

  test("a job's own credential reaches its pod and no other; account, role and binding go with the pod", async () => {
    await site.project("main");
    const { create, remove } = await open("openshiftpods", SHARED);
    const { token } = accessOf(await create());
    await create("0000000043");
    const get = async (pod: string) =>
      (await site.call("GET", `/api/v1/namespaces/main/pods/${pod}`, token)).status;
    expect([await get(`small-${ID}`), await get("small-0000000043")]).toEqual([200, 403]);
    await remove();
    await site.until("the account is collected", async () => (await get(`small-${ID}`)) === 401);
    for (const path of [`${RBAC}/namespaces/main/roles`, `${RBAC}/namespaces/main/rolebindings`])
      await site.until(path, async () => {
        const { items } = await site.api<{ items: Named[] }>("GET", path);
        return items.every(({ metadata }) => !metadata.name.startsWith(`small-${ID}`));
      });
  });

  test("the credential of a pod that is made again stays when that of the pod before it is collected", async () => {
    await site.project("main");
    const { create, remove } = await open("openshiftpods", SHARED);
    const before = accessOf(await create());
    // It collects what a pod that is gone owned: only when both nodes have been there.
    await site.kill("kube-controller-manager");
    const after = await remove()
      .then(() => create())
      .then(accessOf)
      .finally(() => site.restart("kube-controller-manager"));
    const get = async ({ token }: Access) =>
      (await site.call("GET", `/api/v1/namespaces/main/pods/small-${ID}`, token)).status;
    await site.until("the account of the former pod is collected", async () => (await get(before)) === 401);
    expect(await get(after)).toBe(200);
  });

  test("a launcher that may not make credentials says so at its start, and hands on its own", async () => {
    await site.project("main");
    const rules = [
      { apiGroups: [""], resources: ["pods"], verbs: ["create", "delete", "get", "list", "watch"] },
      { apiGroups: [""], resources: ["events"], verbs: ["list"] },
    ];
    await site.api("POST", `${RBAC}/namespaces/main/roles`, { metadata: { name: "pods" }, rules });
    await site.api("POST", `${RBAC}/namespaces/main/rolebindings`, {
      metadata: { name: "pods" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "pods" },
      subjects: [{ kind: "User", name: "launcher" }],
    });
    const { create, provider, remove } = await open("openshiftpods", SHARED, {}, "launcher");
    const warning = { level: "warn", text: expect.stringContaining("get the launcher's own credential") };
    expect(lines).toMatchObject([warning]);
    expect(await provider.quota(signal)).toEqual({});
    expect(accessOf(await create()).token).toBe("launcher-token");
    // What `explain` shows of the node.
    expect(lines).toMatchObject([
      warning,
      {
        level: "remark",
        facts: { nodeId: ID },
        text: "jobs in project main get the launcher's own credential: it may not create serviceaccounts",
      },
    ]);
    await remove();
  });

  test("a pool whose project is missing, or is not for the launcher, is left out, and the others serve", async () => {
    await site.project("main");
    await site.project("closed");
    const pools = ["main", "closed", "nope"].map((name) => ({ name, labels: [SHARED] }));
    const admin = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "admin" };
    const grant = (project: string) =>
      site.api("POST", `${RBAC}/namespaces/${project}/rolebindings`, {
        metadata: { name: "launcher" },
        roleRef: admin,
        subjects: [{ kind: "User", name: "launcher" }],
      });
    const only = (name: string, user: "admin" | "launcher") =>
      failure(open("openshiftpods", SHARED, { pool: { name } }, user));
    expect(await only("nope", "admin")).toMatchObject({
      kind: "configuration",
      message: expect.stringContaining("there is no project nope"),
    });
    // The right to the only project is missing: the provider waits for it.
    expect((await only("main", "launcher")).kind).toBe("access");
    await grant("main");
    const { provider, create, remove, config } = await open(
      "openshiftpods",
      SHARED,
      { provider: { pools } },
      "launcher",
    );
    const [, closed, nope] = config.pools.map(({ labels }) => labels.get("small")!);
    await create();
    expect((await provider.list(signal)).map(({ tag }) => tag?.nodeId)).toEqual([ID]);
    for (const label of [closed!, nope!])
      expect(await failure(provider.need(label, signal))).toMatchObject({
        kind: "configuration",
        message: expect.stringMatching(/pool (closed|nope): .*(closed|nope)/),
      });
    await grant("closed");
    await site.until("the right counts", async () =>
      provider.need(closed!, signal).then(
        () => true,
        () => false,
      ),
    );
    await remove();
  });

  test("pods of others that have ended take nothing of a quota, and one with a scope is the server's to judge", async () => {
    await site.project("main");
    await quota({ pods: "3" });
    const spec = { containers: [{ name: "c", image: "i" }], restartPolicy: "Never" };
    const pods = "/api/v1/namespaces/main/pods";
    await site.api("POST", pods, { metadata: { name: "done", annotations: { behaviour: "ends" } }, spec });
    await site.until("the pod has ended", async () => {
      const { status } = await site.api<{ status?: { phase?: string } }>("GET", `${pods}/done`);
      return status?.phase === "Failed";
    });
    await site.api("POST", "/api/v1/namespaces/main/resourcequotas", {
      metadata: { name: "scoped" },
      spec: { hard: { pods: "0" }, scopes: ["Terminating"] },
    });
    const { provider, create } = await open("openshiftpods", SHARED);
    expect(await provider.quota(signal)).toEqual({ instances: 3 });
    const theirs = (await provider.list(signal)).filter(({ tag }) => tag === null);
    expect(theirs).toMatchObject([{ id: "main-done", resources: {} }]);
    for (const id of ["0000000001", "0000000002", "0000000003"]) await create(id);
  });

  test("a ResourceQuota is the provider's quota, a LimitRange what unsized pods need; beyond it is quota (check 34)", async () => {
    await site.project("main");
    await site.api("POST", "/api/v1/namespaces/main/limitranges", {
      metadata: { name: "l" },
      spec: {
        limits: [
          {
            type: "Container",
            defaultRequest: { cpu: "500m", memory: "256Mi" },
            default: { cpu: "1", memory: "1Gi" },
          },
        ],
      },
    });
    await quota({ pods: "5", "requests.cpu": "1", "requests.memory": "4Gi" });
    const { provider, label, create } = await open("openshiftpods", SHARED);
    expect(await provider.quota(signal)).toEqual({ instances: 5, cores: 1, ram: 4096 });
    expect(await provider.need(label, signal)).toEqual({ instances: 1, cores: 0.5, ram: 256 });
    await create("0000000001");
    await create("0000000002");
    const error = await failure(create("0000000003"));
    expect(error).toMatchObject({ kind: "quota", message: expect.stringContaining("exceeded quota") });
  });
});
