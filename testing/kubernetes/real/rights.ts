import { describe, expect, test } from "vitest";
import { accessOf, open, POD, SHARED, SPACE, site, useCluster, zuulConfig } from "../bench.ts";

useCluster();

describe("a job's rights, by kubectl with what the record says", () => {
  const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"] as const;
  const RESOURCES = [
    "pods",
    "pods/exec",
    "pods/log",
    "pods/portforward",
    "services",
    "endpoints",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "serviceaccounts/token",
    "deployments.apps",
    "replicasets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "resourcequotas",
    "events",
  ];

  /** What the server answers to the token's own reviews, for everything: `pods: get list`. */
  async function rights(token: string, namespace: string): Promise<readonly string[]> {
    const asked = RESOURCES.map(async (resource) => {
      const [name = "", group = ""] = resource.split(/\.(.*)/);
      const [kind, subresource = ""] = name.split("/");
      const allowed = await Promise.all(
        VERBS.map(async (verb) => {
          const resourceAttributes = { namespace, verb, group, resource: kind, subresource };
          const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
          const { text } = await site.call("POST", path, token, { spec: { resourceAttributes } });
          return JSON.parse(text).status.allowed ? [verb] : [];
        }),
      );
      const verbs = allowed.flat();
      return verbs.length === 0 ? [] : [`${resource}: ${verbs.join(" ")}`];
    });
    return (await Promise.all(asked)).flat();
  }

  const all = "get list watch create update patch delete";
  test.each([
    [
      "kubernetes",
      POD,
      ["pods: get list", "pods/exec: get create", "pods/log: get", "pods/portforward: get create"],
    ],
    [
      "kubernetes",
      SPACE,
      [
        `pods: ${all}`,
        "pods/exec: get create",
        "pods/log: get",
        "pods/portforward: get create",
        ...["services", "endpoints", "configmaps", "secrets"].map((one) => `${one}: ${all}`),
        ...["deployments.apps", "replicasets.apps", "jobs.batch", "cronjobs.batch"].map(
          (one) => `${one}: ${all}`,
        ),
      ],
    ],
    ["openshiftpods", SHARED, []],
  ] as const)("%s, %j", async (kind, label, expected) => {
    if (kind === "openshiftpods") await site.project("main");
    const { create } = await open(kind, label);
    const access = accessOf(await create());
    const config = zuulConfig(access);
    // Of a shared project the rights are on one pod by its name, so on "pods" there are none.
    expect(await rights(access.token, access.namespace)).toEqual(expected);
    expect(await rights(access.token, "default")).toEqual([]);
    if (access.pod !== undefined) {
      expect(await site.kubectl(["get", "pod", access.pod, "-o", "name"], config)).toBe(
        `pod/${access.pod}\n`,
      );
      // It gets as far as the kubelet, which kwok does not play.
      const exec = await site
        .kubectl(["exec", access.pod, "--", "true"], config)
        .catch((error: Error) => error.message);
      expect(exec).not.toMatch(/forbidden/i);
    }
    const outside = await site.kubectl(["get", "namespaces"], config).catch((error: Error) => error.message);
    expect(outside).toMatch(/forbidden/i);
    const review = await site.kubectl(["auth", "can-i", "--list", "-n", "kube-system"], config);
    expect(review).not.toMatch(/pods|secrets/);
  });
});
