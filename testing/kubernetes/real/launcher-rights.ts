import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { applyRoles, bindAll, type Named, open, POD, RBAC, site, useCluster } from "../bench.ts";
import { may, verbsOf } from "../may.ts";
import { POLICY, ROLES, type Rule, type Verb } from "../roles.ts";

useCluster();

describe("the launcher's rights, by its service account and the roles of the page", () => {
  const launcher = { kind: "ServiceAccount", name: "launcher", namespace: "yard" };
  const { rules } = ROLES.find((role) => (role as Named).metadata.name === "nodeyard-launcher") as {
    readonly rules: readonly Rule[];
  };

  /** A token of the account, as a launcher's pod has one. */
  async function tokenOf(): Promise<string> {
    await applyRoles();
    await site.project("yard");
    await site.api("POST", "/api/v1/namespaces/yard/serviceaccounts", { metadata: { name: "launcher" } });
    await bindAll("nodeyard-launcher", launcher);
    const path = "/api/v1/namespaces/yard/serviceaccounts/launcher/token";
    return (await site.api<{ status: { token: string } }>("POST", path, { spec: {} })).status.token;
  }

  function allowed(resource: string, object: string, verb: Verb): boolean {
    const [name = "", group = ""] = resource.split(/\.(.*)/);
    return rules.some(
      ({ apiGroups, resources, resourceNames, verbs }) =>
        apiGroups.includes(group) &&
        resources.includes(name) &&
        verbs.includes(verb) &&
        // Collections have no name.
        (resourceNames?.includes(
          ["list", "watch", "create"].includes(verb) && !name.includes("/") ? "" : object,
        ) ??
          true),
    );
  }

  const WITHIN = [
    ...["pods", "pods/exec", "pods/log", "events", "configmaps", "secrets", "services"],
    ...["serviceaccounts", "serviceaccounts/token", "deployments.apps"],
    ...["roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"],
  ];
  const OUTSIDE = [
    ...["namespaces", "nodes", "persistentvolumes"],
    ...["clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"],
  ];

  test("each verb on each resource, in a namespace that is none of its own: what the page says, and nothing else", async () => {
    const token = await tokenOf();
    // The names that rules are limited to, and one that they are not.
    const names = ["none", ...rules.flatMap(({ resourceNames = [] }) => resourceNames)];
    for (const [namespace, resources] of [
      ["kube-system", WITHIN],
      [null, OUTSIDE],
    ] as const)
      for (const resource of resources)
        for (const object of names) {
          const verbs = verbsOf(resource);
          const tried = await Promise.all(
            verbs.map((verb) => may(token, { namespace, object }, resource, verb)),
          );
          expect(
            verbs.filter((_, index) => tried[index]),
            `${resource} ${object}`,
          ).toEqual(verbs.filter((verb) => allowed(resource, object, verb)));
        }
  });

  test("it makes no token of another account, grants nobody more than jobs get or it has, and takes nobody's place", async () => {
    const token = await tokenOf();
    const asked = async (path: string, body: object) => (await site.call("POST", path, token, body)).status;
    const tokens = "/api/v1/namespaces/kube-system/serviceaccounts";
    // One that the controllers use to give every right.
    expect(await asked(`${tokens}/clusterrole-aggregation-controller/token`, { spec: {} })).toBe(403);
    expect(await asked(`${tokens}/zuul-worker/token`, { spec: {} })).toBe(404);
    const grant = (name: string) => ({
      metadata: { name: "tried" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [launcher],
    });
    for (const role of ["cluster-admin", "admin", "edit", "view"])
      expect(await asked(`${RBAC}/namespaces/yard/rolebindings`, grant(role)), role).toBe(403);
    expect(await asked(`${RBAC}/clusterrolebindings`, grant("cluster-admin"))).toBe(403);
    for (const role of ["nodeyard-zuul", "nodeyard-zuul-restricted"])
      expect(await asked(`${RBAC}/namespaces/yard/rolebindings?dryRun=All`, grant(role)), role).toBe(201);
    const reviewed = async (verb: string, resource: string, group = "") => {
      const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
      const body = { spec: { resourceAttributes: { verb, resource, group } } };
      return JSON.parse((await site.call("POST", path, token, body)).text).status.allowed as boolean;
    };
    for (const resource of ["users", "groups", "serviceaccounts"])
      expect(await reviewed("impersonate", resource), resource).toBe(false);
    expect(await reviewed("escalate", "clusterroles", "rbac.authorization.k8s.io")).toBe(false);
    expect(await reviewed("*", "*", "*")).toBe(false);
  });

  test("what its role cannot limit, the policy of the page does: it stays in the namespaces of its nodes", async () => {
    const token = await tokenOf();
    await site.project("other");
    const binding = {
      metadata: { name: "tried" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "nodeyard-zuul" },
      subjects: [launcher],
    };
    const pod = { metadata: { name: "tried" }, spec: { containers: [{ name: "a", image: "i" }] } };
    const calls = [
      ["POST", `${RBAC}/namespaces/kube-system/rolebindings`, binding],
      ["POST", "/api/v1/namespaces/other/pods", pod],
      ["POST", "/api/v1/namespaces/other/serviceaccounts", { metadata: { name: "zuul-worker" } }],
      ["POST", "/api/v1/namespaces", { metadata: { name: "unmarked" } }],
      ["DELETE", "/api/v1/namespaces/other", undefined],
    ] as const;
    const refused = async () => {
      const answers = await Promise.all(
        calls.map(([method, path, body]) => site.call(method, `${path}?dryRun=All`, token, body)),
      );
      return answers.filter(({ status, text }) => status === 403 && text.includes("namespaces of its nodes"));
    };
    expect(await refused()).toEqual([]);
    const file = join(site.folder, "policy.json");
    writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: POLICY }));
    onTestFinished(async () => void (await site.kubectl(["delete", "-f", file])));
    await site.kubectl(["apply", "-f", file]);
    await site.until("the server applies it", async () => (await refused()).length === calls.length);
    const kubeconfig = join(site.folder, "launcher.account");
    writeFileSync(kubeconfig, site.configFor(token));
    const { create, remove } = await open("kubernetes", POD, { kubeconfig });
    await create();
    await remove();
  });
});
