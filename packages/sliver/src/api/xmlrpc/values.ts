/** A `double`; a plain number is an `int`. */
export class XmlRpcDouble {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** A `dateTime.iso8601`, as it came: it has no time zone. */
export class XmlRpcTime {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** `int` is number, `base64` Uint8Array, and `nil`, the one extension that is read, null. */
export type XmlRpcValue =
  | number
  | boolean
  | string
  | null
  | XmlRpcDouble
  | XmlRpcTime
  | Uint8Array
  | readonly XmlRpcValue[]
  | { readonly [name: string]: XmlRpcValue };
