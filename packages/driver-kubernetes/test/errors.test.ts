import { expect, test } from "vitest";
import { KubeConfigError, KubeError } from "../src/client/index.ts";
import { mapError } from "../src/errors.ts";

const answered = (code: number, message: string) =>
  new KubeError("POST pods", code, JSON.stringify({ kind: "Status", code, message }));
const rbac =
  'pods is forbidden: User "system:serviceaccount:ci:nodeyard" cannot create resource "pods" in API group ""';

test.each([
  ["a credential that is refused", answered(401, "Unauthorized"), "access"],
  ["a right that is missing", answered(403, rbac), "access"],
  ["a kubeconfig that cannot be read", new KubeConfigError("the plugin failed"), "access"],
  [
    "an admission rule about this pod",
    answered(403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest"'),
    "configuration",
  ],
  ["a quota", answered(403, 'pods "a" is forbidden: exceeded quota: compute'), "quota"],
  ["a body that is refused", answered(422, "Pod is invalid"), "configuration"],
])("%s", (_, error, kind) => expect(mapError(error, "p").kind).toBe(kind));
