"""Fills the cloud; each step looks before it makes."""
import calendar
import os
import sys
import time
import openstack
state = sys.argv[1]
os.environ['OS_CLIENT_CONFIG_FILE'] = state + '/clouds.yaml'
adm = openstack.connect(cloud='admin')


def retry(what, fn, limit=90):
    end = time.time() + limit
    while True:
        try:
            return fn()
        except Exception as e:
            if time.time() > end:
                raise SystemExit('%s: %s' % (what, e))
            time.sleep(0.3)


retry('glance', lambda: list(adm.image.images(limit=1)))
if not adm.image.find_image('nodeyard-fake'):
    img = state + '/images-src.raw'
    with open(img, 'wb') as f:
        f.write(b'nodeyard fake image\n'.ljust(65536, b'\0'))
    adm.create_image('nodeyard-fake', filename=img, disk_format='raw', container_format='bare',
                     wait=True, visibility='public')
    os.unlink(img)
retry('nova', lambda: list(adm.compute.flavors()))
for name, vcpus, ram, disk in (('small', 1, 1024, 10), ('medium', 2, 4096, 20), ('toobig', 4096, 1024, 1)):
    if not adm.compute.find_flavor(name):
        adm.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
retry('neutron', lambda: list(adm.network.networks()))
if not adm.network.find_network('public'):
    n = adm.network.create_network(name='public', is_router_external=True,
                                   provider_network_type='flat', provider_physical_network='ext')
    adm.network.create_subnet(network_id=n.id, name='public', ip_version=4, cidr='198.51.100.0/24',
                              is_dhcp_enabled=False)
# each compute host must be up, in its zone, and in placement
hosts = sys.argv[2:]


def computes_up():   # a heartbeat of this very process: the database still calls a killed one "up" for a minute
    beats = {s.host: s for s in adm.compute.services() if s.binary == 'nova-compute' and s.state == 'up'}
    for host in hosts:
        started = int(os.path.getmtime('%s/run/nova-compute-%s.pid' % (state, host)))
        last = beats[host].updated_at
        if last and calendar.timegm(time.strptime(last[:19], '%Y-%m-%dT%H:%M:%S')) < started:
            raise RuntimeError('no heartbeat of ' + host)


retry('nova-compute', computes_up)
retry('inventory', lambda: 1 // (len(adm.placement.get('/resource_providers').json()['resource_providers']) == len(hosts)))
aggregates = {a.name for a in adm.compute.aggregates()}
for host, zone in zip(hosts, ('north', 'south')):
    if zone not in aggregates:
        adm.compute.add_host_to_aggregate(adm.compute.create_aggregate(name=zone, availability_zone=zone), host)
# a flavor for which there is room in the second zone alone
if not adm.compute.find_flavor('southern'):
    adm.placement.put('/traits/CUSTOM_SOUTH', microversion='1.6').raise_for_status()
    south = next(p['uuid'] for p in adm.placement.get('/resource_providers').json()['resource_providers'] if p['name'] == hosts[1])
    own = adm.placement.get('/resource_providers/%s/traits' % south, microversion='1.6').json()
    own['traits'].append('CUSTOM_SOUTH')
    adm.placement.put('/resource_providers/%s/traits' % south, json=own, microversion='1.6').raise_for_status()
    adm.compute.create_flavor_extra_specs(
        adm.compute.create_flavor(name='southern', vcpus=1, ram=1024, disk=10), {'trait:CUSTOM_SOUTH': 'required'})
retry('cinder-volume', lambda: 1 / len(adm.block_storage.get('/scheduler-stats/get_pools').json()['pools']))
