import type { HttpAnswer, SaidFault } from "@nodeyard/driver";

/**
 * What an error answer says. nova and cinder: {"forbidden": {"code": 403, "message": ..}}. neutron: {"NeutronError": {"type", "message",
 * "detail"}}, whose type is its code, or a string. keystone: {"error": {"message"}}. glance: a page of HTML.
 */
export function faultOf({ text, headers }: HttpAnswer): SaidFault {
  // `x-openstack-request-id` since 2016; nova and glance also have an older name.
  const requestId = headers["x-openstack-request-id"] ?? headers["x-compute-request-id"] ?? null;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { requestId };
  }
  const inner = typeof body === "object" && body !== null ? Object.values(body)[0] : undefined;
  if (typeof inner === "string") return { text: inner, requestId };
  const { message, type } = (inner ?? {}) as { message?: unknown; type?: unknown };
  return {
    codes: typeof type === "string" ? [type] : [],
    text: typeof message === "string" ? message : text,
    requestId,
  };
}
