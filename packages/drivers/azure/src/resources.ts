/** What the driver reads of Azure's resources, of all types. Ids are compared in lower case, as Azure does. */

type Reference = { readonly id: string };

/** A machine, network interface, public address, disk or image. */
export interface AzureResource {
  readonly id: string;
  readonly name: string;
  readonly location?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly zones?: readonly string[];
  /** Of a disk: the machine that has it. */
  readonly managedBy?: string;
  readonly properties: {
    /** Creating, Updating, Succeeded, Failed, Canceled, Deleting. */
    readonly provisioningState?: string;
    readonly priority?: string;
    readonly hardwareProfile?: { readonly vmSize?: string };
    readonly networkProfile?: { readonly networkInterfaces?: readonly Reference[] };
    readonly storageProfile?: { readonly osDisk?: { readonly managedDisk?: Reference } };
    readonly instanceView?: {
      readonly statuses?: readonly { readonly code?: string; readonly message?: string }[];
    };
    /** Of an interface. */
    readonly virtualMachine?: Reference;
    readonly ipConfigurations?: readonly {
      readonly properties?: {
        readonly privateIPAddress?: string;
        readonly privateIPAddressVersion?: string;
        readonly publicIPAddress?: Reference;
      };
    }[];
    /** Of a public address. */
    readonly ipAddress?: string;
    readonly ipConfiguration?: Reference;
    /** Of a disk: Unattached, Attached, Reserved, ReadyToUpload, ActiveUpload. */
    readonly diskState?: string;
  };
}

/** An id, or another name, in the form in which they are compared. */
export const keyOf = (id: string | undefined) => (id ?? "").toLowerCase();
