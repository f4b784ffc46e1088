// Judges exchanges of the double with Microsoft's own typed fakes, which are generated from the descriptions of its API: reads a JSON list of
// exchanges, and prints what the types do not know, what a path has too much, and statuses that a call never has.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	compute "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6"
	network "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6/fake"
)

type exchange struct {
	Call, Path   string
	Query        map[string]string
	Body, Answer any
	Status       int
}

var (
	current    exchange
	complaints []string
	errs       azfake.ErrorResponder
)

func complain(what string, arguments ...any) {
	complaints = append(complaints, current.Call+": "+fmt.Sprintf(what, arguments...))
}

// The value as Microsoft's type; a complaint for each property that the type does not have or that comes back changed.
func typed[T any](what string, value any) T {
	var into T
	text, _ := json.Marshal(value)
	if value == nil {
		return into
	}
	if err := json.Unmarshal(text, &into); err != nil {
		complain("%s: %v", what, err)
		return into
	}
	back, err := json.Marshal(into)
	if err != nil {
		complain("%s: %v", what, err)
	}
	var round any
	_ = json.Unmarshal(back, &round)
	compare(what, value, round)
	return into
}

func compare(at string, sent, kept any) {
	switch one := sent.(type) {
	case map[string]any:
		other, _ := kept.(map[string]any)
		for key, value := range one {
			if value != nil {
				compare(at+"."+key, value, other[key])
			}
		}
	case []any:
		other, _ := kept.([]any)
		for at_, value := range one {
			if at_ < len(other) {
				compare(fmt.Sprintf("%s[%d]", at, at_), value, other[at_])
			} else {
				complain("%s: an item is lost", at)
			}
		}
	default:
		if !reflect.DeepEqual(sent, kept) {
			complain("%s: %v became %v", at, sent, kept)
		}
	}
}

// An operation that was accepted, with its answer.
func poll[T any](answer T) (resp azfake.PollerResponder[T], _ azfake.ErrorResponder) {
	resp.SetTerminalResponse(current.Status, answer, nil)
	return resp, errs
}

func single[T any](answer T) (resp azfake.Responder[T], _ azfake.ErrorResponder) {
	resp.SetResponse(current.Status, answer, nil)
	return resp, errs
}

func page[T any](answer T) (resp azfake.PagerResponder[T]) {
	resp.AddPage(current.Status, answer, nil)
	return resp
}

// What a handler was given of the request must be all of its body.
func request(given any) {
	text, _ := json.Marshal(given)
	var kept any
	_ = json.Unmarshal(text, &kept)
	compare("request", current.Body, kept)
}

type doer interface {
	Do(*http.Request) (*http.Response, error)
}

func main() {
	ctx := context.Background()
	vms := compute.NewVirtualMachinesServerTransport(&compute.VirtualMachinesServer{
		BeginCreateOrUpdate: func(_ context.Context, _, _ string, vm armcompute.VirtualMachine, _ *armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientCreateOrUpdateResponse], azfake.ErrorResponder) {
			request(vm)
			return poll(armcompute.VirtualMachinesClientCreateOrUpdateResponse{VirtualMachine: typed[armcompute.VirtualMachine]("answer", current.Answer)})
		},
		BeginDelete: func(context.Context, string, string, *armcompute.VirtualMachinesClientBeginDeleteOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientDeleteResponse], azfake.ErrorResponder) {
			return poll(armcompute.VirtualMachinesClientDeleteResponse{})
		},
		BeginDeallocate: func(context.Context, string, string, *armcompute.VirtualMachinesClientBeginDeallocateOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientDeallocateResponse], azfake.ErrorResponder) {
			return poll(armcompute.VirtualMachinesClientDeallocateResponse{})
		},
		BeginStart: func(context.Context, string, string, *armcompute.VirtualMachinesClientBeginStartOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientStartResponse], azfake.ErrorResponder) {
			return poll(armcompute.VirtualMachinesClientStartResponse{})
		},
		Get: func(context.Context, string, string, *armcompute.VirtualMachinesClientGetOptions) (azfake.Responder[armcompute.VirtualMachinesClientGetResponse], azfake.ErrorResponder) {
			return single(armcompute.VirtualMachinesClientGetResponse{VirtualMachine: typed[armcompute.VirtualMachine]("answer", current.Answer)})
		},
		NewListPager: func(string, *armcompute.VirtualMachinesClientListOptions) azfake.PagerResponder[armcompute.VirtualMachinesClientListResponse] {
			return page(armcompute.VirtualMachinesClientListResponse{VirtualMachineListResult: typed[armcompute.VirtualMachineListResult]("answer", current.Answer)})
		},
	})
	disks := compute.NewDisksServerTransport(&compute.DisksServer{
		BeginCreateOrUpdate: func(_ context.Context, _, _ string, disk armcompute.Disk, _ *armcompute.DisksClientBeginCreateOrUpdateOptions) (azfake.PollerResponder[armcompute.DisksClientCreateOrUpdateResponse], azfake.ErrorResponder) {
			request(disk)
			return poll(armcompute.DisksClientCreateOrUpdateResponse{Disk: typed[armcompute.Disk]("answer", current.Answer)})
		},
		BeginDelete: func(context.Context, string, string, *armcompute.DisksClientBeginDeleteOptions) (azfake.PollerResponder[armcompute.DisksClientDeleteResponse], azfake.ErrorResponder) {
			return poll(armcompute.DisksClientDeleteResponse{})
		},
		Get: func(context.Context, string, string, *armcompute.DisksClientGetOptions) (azfake.Responder[armcompute.DisksClientGetResponse], azfake.ErrorResponder) {
			return single(armcompute.DisksClientGetResponse{Disk: typed[armcompute.Disk]("answer", current.Answer)})
		},
		BeginGrantAccess: func(_ context.Context, _, _ string, access armcompute.GrantAccessData, _ *armcompute.DisksClientBeginGrantAccessOptions) (azfake.PollerResponder[armcompute.DisksClientGrantAccessResponse], azfake.ErrorResponder) {
			request(access)
			return poll(armcompute.DisksClientGrantAccessResponse{AccessURI: typed[armcompute.AccessURI]("answer", current.Answer)})
		},
		BeginRevokeAccess: func(context.Context, string, string, *armcompute.DisksClientBeginRevokeAccessOptions) (azfake.PollerResponder[armcompute.DisksClientRevokeAccessResponse], azfake.ErrorResponder) {
			return poll(armcompute.DisksClientRevokeAccessResponse{})
		},
		NewListByResourceGroupPager: func(string, *armcompute.DisksClientListByResourceGroupOptions) azfake.PagerResponder[armcompute.DisksClientListByResourceGroupResponse] {
			return page(armcompute.DisksClientListByResourceGroupResponse{DiskList: typed[armcompute.DiskList]("answer", current.Answer)})
		},
	})
	images := compute.NewImagesServerTransport(&compute.ImagesServer{
		BeginCreateOrUpdate: func(_ context.Context, _, _ string, image armcompute.Image, _ *armcompute.ImagesClientBeginCreateOrUpdateOptions) (azfake.PollerResponder[armcompute.ImagesClientCreateOrUpdateResponse], azfake.ErrorResponder) {
			request(image)
			return poll(armcompute.ImagesClientCreateOrUpdateResponse{Image: typed[armcompute.Image]("answer", current.Answer)})
		},
		BeginDelete: func(context.Context, string, string, *armcompute.ImagesClientBeginDeleteOptions) (azfake.PollerResponder[armcompute.ImagesClientDeleteResponse], azfake.ErrorResponder) {
			return poll(armcompute.ImagesClientDeleteResponse{})
		},
		Get: func(context.Context, string, string, *armcompute.ImagesClientGetOptions) (azfake.Responder[armcompute.ImagesClientGetResponse], azfake.ErrorResponder) {
			return single(armcompute.ImagesClientGetResponse{Image: typed[armcompute.Image]("answer", current.Answer)})
		},
		NewListByResourceGroupPager: func(string, *armcompute.ImagesClientListByResourceGroupOptions) azfake.PagerResponder[armcompute.ImagesClientListByResourceGroupResponse] {
			return page(armcompute.ImagesClientListByResourceGroupResponse{ImageListResult: typed[armcompute.ImageListResult]("answer", current.Answer)})
		},
	})
	usages := compute.NewUsageServerTransport(&compute.UsageServer{
		NewListPager: func(string, *armcompute.UsageClientListOptions) azfake.PagerResponder[armcompute.UsageClientListResponse] {
			return page(armcompute.UsageClientListResponse{ListUsagesResult: typed[armcompute.ListUsagesResult]("answer", current.Answer)})
		},
	})
	skus := compute.NewResourceSKUsServerTransport(&compute.ResourceSKUsServer{
		NewListPager: func(*armcompute.ResourceSKUsClientListOptions) azfake.PagerResponder[armcompute.ResourceSKUsClientListResponse] {
			return page(armcompute.ResourceSKUsClientListResponse{ResourceSKUsResult: typed[armcompute.ResourceSKUsResult]("answer", current.Answer)})
		},
	})
	nics := network.NewInterfacesServerTransport(&network.InterfacesServer{
		NewListPager: func(string, *armnetwork.InterfacesClientListOptions) azfake.PagerResponder[armnetwork.InterfacesClientListResponse] {
			return page(armnetwork.InterfacesClientListResponse{InterfaceListResult: typed[armnetwork.InterfaceListResult]("answer", current.Answer)})
		},
	})
	ips := network.NewPublicIPAddressesServerTransport(&network.PublicIPAddressesServer{
		NewListPager: func(string, *armnetwork.PublicIPAddressesClientListOptions) azfake.PagerResponder[armnetwork.PublicIPAddressesClientListResponse] {
			return page(armnetwork.PublicIPAddressesClientListResponse{PublicIPAddressListResult: typed[armnetwork.PublicIPAddressListResult]("answer", current.Answer)})
		},
	})
	subnets := network.NewSubnetsServerTransport(&network.SubnetsServer{
		Get: func(context.Context, string, string, string, *armnetwork.SubnetsClientGetOptions) (azfake.Responder[armnetwork.SubnetsClientGetResponse], azfake.ErrorResponder) {
			return single(armnetwork.SubnetsClientGetResponse{Subnet: typed[armnetwork.Subnet]("answer", current.Answer)})
		},
	})
	clients := map[string]struct {
		client doer
		name   string
		list   string
	}{
		"virtualMachines":            {vms, "VirtualMachinesClient", "NewListPager"},
		"virtualMachines/deallocate": {vms, "VirtualMachinesClient", ""},
		"virtualMachines/start":      {vms, "VirtualMachinesClient", ""},
		"disks":                      {disks, "DisksClient", "NewListByResourceGroupPager"},
		"disks/beginGetAccess":       {disks, "DisksClient", ""},
		"disks/endGetAccess":         {disks, "DisksClient", ""},
		"images":                     {images, "ImagesClient", "NewListByResourceGroupPager"},
		"usages":                     {usages, "UsageClient", "NewListPager"},
		"skus":                       {skus, "ResourceSKUsClient", "NewListPager"},
		"networkInterfaces":          {nics, "InterfacesClient", "NewListPager"},
		"publicIPAddresses":          {ips, "PublicIPAddressesClient", "NewListPager"},
		"subnets":                    {subnets, "SubnetsClient", ""},
	}
	var all []exchange
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		panic(err)
	}
	judged := map[string]int{}
	for _, current = range all {
		method, kind, _ := strings.Cut(current.Call, " ")
		one, known := clients[kind]
		if !known {
			continue
		}
		judged[current.Call]++
		answer, _ := json.Marshal(current.Answer)
		if current.Status >= 400 {
			refusal := runtime.NewResponseError(&http.Response{StatusCode: current.Status, Body: http.NoBody})
			var said struct {
				Error struct{ Code, Message string }
			}
			if json.Unmarshal(answer, &said) != nil || said.Error.Code == "" || said.Error.Message == "" {
				complain("no error of the API: %s (%v)", answer, refusal != nil)
			}
			continue
		}
		operation := map[string]string{"PUT": "BeginCreateOrUpdate", "DELETE": "BeginDelete", "GET": "Get"}[method]
		if value, isMap := current.Answer.(map[string]any); isMap && method == "GET" && value["value"] != nil {
			operation = one.list
		}
		if method == "POST" {
			operation = map[string]string{"disks/beginGetAccess": "BeginGrantAccess", "disks/endGetAccess": "BeginRevokeAccess",
				"virtualMachines/deallocate": "BeginDeallocate", "virtualMachines/start": "BeginStart"}[kind]
		}
		query := url.Values{}
		for key, value := range current.Query {
			query.Set(key, value)
		}
		body, _ := json.Marshal(current.Body)
		named := context.WithValue(ctx, runtime.CtxAPINameKey{}, one.name+"."+operation)
		asked, err := http.NewRequestWithContext(named, method, "https://azure.example"+current.Path+"?"+query.Encode(), bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		asked.Header.Set("Content-Type", "application/json")
		if _, err := one.client.Do(asked); err != nil {
			complain("%s.%s: %v", one.name, operation, err)
		}
	}
	told, _ := json.Marshal(map[string]any{"judged": judged, "complaints": complaints})
	fmt.Println(string(told))
}
