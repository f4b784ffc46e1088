import { describe, expect, it } from "vitest";
import {
  changeNode,
  changeRequest,
  decodeNode,
  decodeRequest,
  encodeNode,
  encodeRequest,
  newNode,
  newRequest,
  RecordError,
} from "../src/index.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const string = (data: Uint8Array) => new TextDecoder().decode(data);
const node = (text: string) => decodeNode("0000000001", bytes(text));
const request = (text: string) => decodeRequest("100-0000000005", bytes(text));

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof RecordError) return error.code;
    throw error;
  }
  return "nothing thrown";
}

describe("decoding", () => {
  it("gives the defaults of absent keys, which are not those of null", () => {
    const bare = node('{"state": "ready"}');
    expect(bare).toMatchObject({
      username: "zuul",
      connectionPort: 22,
      hostKeys: [],
      type: [],
      allocatedTo: null,
    });
    const nulls = node(
      '{"state": "ready", "username": null, "host_keys": null, "type": null, "connection_port": null}',
    );
    expect(nulls).toMatchObject({ username: null, connectionPort: null, hostKeys: [], type: [] });
    expect(nulls.oddities).toEqual([]);
    expect(request('{"state": "requested"}')).toMatchObject({
      reuse: true,
      relativePriority: 0,
      nodeTypes: [],
    });
  });

  it("reads the old forms of a node", () => {
    expect(node('{"state": "ready", "type": "small", "ssh_port": 2222}')).toMatchObject({
      type: ["small"],
      connectionPort: 2222,
    });
    expect(node('{"state": "hold", "hold_expiration": "3600"}').holdExpiration).toBe(3600);
    expect(node('{"state": "hold", "hold_expiration": "soon"}').holdExpiration).toBe(0);
  });

  it("lists odd values, gives their defaults and keeps the record", () => {
    const record = node(
      '{"state": "ready", "az": 5, "slot": "x", "host_keys": ["a", 1], "resources": {"cores": NaN, "ram": 8}}',
    );
    expect([...record.oddities].sort()).toEqual(["az", "host_keys", "resources", "slot"]);
    expect(record).toMatchObject({ az: null, slot: null, hostKeys: ["a"], resources: { ram: 8 } });
  });

  it("refuses what could do harm when guessed", () => {
    expect(codeOf(() => node(""))).toBe("record.empty");
    expect(codeOf(() => node("{"))).toBe("record.not_json");
    expect(codeOf(() => decodeNode("1", new Uint8Array([0x7b, 0xff, 0x7d])))).toBe("record.not_json");
    expect(codeOf(() => node("[]"))).toBe("record.not_an_object");
    expect(codeOf(() => node("NaN"))).toBe("record.not_an_object");
    expect(codeOf(() => node("{}"))).toBe("record.unknown_state");
    expect(codeOf(() => node('{"state": "pending"}'))).toBe("record.unknown_state");
    expect(codeOf(() => node('{"state": "ready", "allocated_to": 7}'))).toBe("record.bad_field");
    expect(codeOf(() => node('{"state": "ready", "provider": 7}'))).toBe("record.bad_field");
    expect(codeOf(() => request('{"state": "requested", "node_types": "small"}'))).toBe("record.bad_field");
    expect(codeOf(() => decodeRequest("100-000-1", bytes('{"state": "requested"}')))).toBe("record.bad_id");
  });

  it("is not fooled by keys of Object.prototype", () => {
    const record = node('{"state": "ready", "__proto__": {"pool": "x"}, "constructor": 1, "toString": 2}');
    expect(record.pool).toBeNull();
    expect(Object.getPrototypeOf(record)).toBe(Object.prototype);
  });
});

describe("changing", () => {
  it("replaces the changed values only, byte for byte", () => {
    const before =
      ' {"big": 12345678901234567890,"state" : "ready" , "n": [NaN, -Infinity,  "a\\ud800}"], "__proto__":{"x":1},\n' +
      '"dup": 1, "k\\u0065y": 1.50, "dup": 2, "state_time": 1.0, "host_keys": ["k"]} ';
    const after = changeNode(node(before), { state: "in-use" }, 2.5);
    expect(string(encodeNode(after))).toBe(
      before.replace('"ready"', '"in-use"').replace('"state_time": 1.0', '"state_time": 2.5'),
    );
    expect(after).toMatchObject({ state: "in-use", stateTime: 2.5 });
  });

  it("replaces the last of duplicate keys, which is the one that was read", () => {
    const record = node('{"state": "ready", "pool": "a", "host_keys": [], "pool": "b"}');
    expect(record.pool).toBe("b");
    expect(string(encodeNode(changeNode(record, { pool: "c" }, 1)))).toBe(
      '{"state": "ready", "pool": "a", "host_keys": [], "pool": "c"}',
    );
  });

  it("finds a key that is written with escapes", () => {
    const changed = changeNode(
      node('{"st\\u0061te": "ready", "state_time": 1, "host_keys": []}'),
      { state: "used" },
      2,
    );
    expect(string(encodeNode(changed))).toBe('{"st\\u0061te": "used", "state_time": 2, "host_keys": []}');
  });

  it("sets state_time with every state, even the same, and with nothing else", () => {
    const record = node('{"state": "ready", "state_time": 1}');
    expect(changeNode(record, { state: "ready" }, 9).stateTime).toBe(9);
    expect(changeNode(record, { comment: "x" }, 9).stateTime).toBe(1);
  });

  it("keeps ssh_port with connection_port and host_keys a list", () => {
    const record = changeNode(node('{"state": "ready", "host_keys": null}'), { connectionPort: 2200 }, 1);
    const written = JSON.parse(string(encodeNode(record)));
    expect(written).toMatchObject({ connection_port: 2200, ssh_port: 2200, host_keys: [] });
    expect(JSON.parse(string(encodeNode(newNode({ state: "init", pool: null }, 1))))).toMatchObject({
      ssh_port: 22,
      connection_port: 22,
      state_time: 1,
      created_time: 1,
      host_keys: [],
      username: "zuul",
    });
  });

  it("writes every key that Zuul needs on a request", () => {
    const record = changeRequest(request('{"state": "requested"}'), { declinedBy: ["a"] }, 3);
    const keys = ["state", "state_time", "event_id", "requestor", "requestor_data", "node_types", "provider"];
    expect(Object.keys(JSON.parse(string(encodeRequest(record))))).toEqual(expect.arrayContaining(keys));
    const fresh = JSON.parse(string(encodeRequest(newRequest({ nodeTypes: ["small"], reuse: false }, 3))));
    expect(fresh).toMatchObject({ state: "requested", state_time: 3, node_types: ["small"], reuse: false });
  });

  it("mends oddities that it overwrites and does not touch its input", () => {
    const record = node('{"state": "ready", "az": 5, "cloud": 6}');
    const changed = changeNode(record, { az: "az1" }, 1);
    expect(changed.oddities).toEqual(["cloud"]);
    expect(record).toMatchObject({ az: null, oddities: ["cloud", "az"] });
  });

  it("refuses what JSON cannot hold", () => {
    const record = node('{"state": "ready"}');
    expect(codeOf(() => changeNode(record, { driverData: { at: 1n } }, 1))).toBe("record.bad_field");
  });
});
