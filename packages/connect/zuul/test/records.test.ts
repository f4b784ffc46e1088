import { deflateSync, inflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { decodeNode, decodeRequest, encodeNode, withoutSnapshot } from "../src/records.ts";

const TEXT = `{"uuid": "608513a263bc423492732989f808d738", "state": "building", "state_time": 1796060685.0, "request_time": 1.5e9,
  "label": "small", "connection_name": "nodeyard", "interface_ip": null, "connection_port": 22, "connection_type": "namespace",
  "username": null, "host_keys": [], "host_id": null, "cloud": null, "quota": {"cores": Infinity}, "tags": {"id": 12345678901234567890}}`;
const bytes = (text: string) => Buffer.concat([Buffer.from("kubernetes\0"), deflateSync(text)]);
const textOf = (data: Uint8Array) => inflateSync(data.subarray(data.indexOf(0) + 1)).toString();

describe("records of Zuul's launchers", () => {
  test("a change keeps the class and the text of all other fields", () => {
    const stored = decodeNode("/n", bytes(TEXT));
    expect([stored.kind, stored.node.state, stored.unknown]).toEqual(["kubernetes", "building", []]);
    const changed = encodeNode(stored, { state: "ready", interface_ip: "192.0.2.7" });
    expect(Buffer.from(changed).toString("latin1")).toMatch(/^kubernetes\0/);
    expect(textOf(changed)).toBe(
      TEXT.replace('"building"', '"ready"').replace('"interface_ip": null', '"interface_ip": "192.0.2.7"'),
    );
  });

  test("a field of a later Zuul is named", () => {
    const later = TEXT.replace("{", '{"lease_lock": 1, ');
    expect(decodeNode("/n", bytes(later)).unknown).toEqual(["lease_lock"]);
  });

  test.each([
    ["another state", bytes(TEXT.replace("building", "thawing")), /state: /],
    ["a field that is missing", bytes(TEXT.replace("label", "lbl")), /label: /],
    ["no compression", Buffer.from(`kubernetes\0${TEXT}`), /not compressed/],
    ["no object", bytes("[]"), /not an object/],
  ])("%s is refused, with the path", (_, data, message) => {
    expect(() => decodeNode("/zuul/nodes/nodes/x", data)).toThrow(message);
    expect(() => decodeNode("/zuul/nodes/nodes/x", data)).toThrow("/zuul/nodes/nodes/x");
  });

  test("a request without nodes is read; a snapshot ends once", () => {
    const request = deflateSync(
      '{"uuid": "r", "priority": 200, "buildset_uuid": "b", "job_name": "unit", "provider_node_data": []}',
    );
    expect(decodeRequest("/r", request).priority).toBe(200);
    const over = withoutSnapshot("/s", deflateSync('{"complete": null, "external_id": null}'))!;
    expect(inflateSync(over).toString()).toBe('{"complete": true, "external_id": null}');
    expect(withoutSnapshot("/s", over)).toBeUndefined();
  });
});
