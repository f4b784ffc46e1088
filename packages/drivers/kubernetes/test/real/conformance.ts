import { driverConformance } from "@nodeyard/driver-testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { driverOn, type Kind, kubernetesRig } from "../../../../../testing/kubernetes/rig.ts";
import { KubernetesSite } from "../../../../../testing/kubernetes/site.ts";

let site: KubernetesSite;
beforeAll(async () => {
  site = await KubernetesSite.start({ hasty: true });
});
let other: Promise<KubernetesSite> | undefined;
const elsewhere = () => {
  other ??= KubernetesSite.start({ hasty: true, nodes: 1 });
  return other;
};
afterAll(async () => {
  await site?.stop();
  await (await other)?.stop();
});

const kinds: readonly Kind[] = ["kubernetes", "openshift", "openshiftpods"];
for (const kind of kinds)
  driverConformance(
    `${kind}, a real control plane`,
    driverOn(kind, ""),
    () => kubernetesRig(site, kind, elsewhere),
    {
      describe,
      test,
      expect,
    },
  );
