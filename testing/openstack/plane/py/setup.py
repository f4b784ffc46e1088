"""Fills the cloud; each step looks before it makes."""
import calendar
import os
import subprocess
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


usr = openstack.connect(cloud='nodeyard')
retry('glance', lambda: list(usr.image.images(limit=1)))
if not usr.image.find_image('nodeyard-fake'):
    img = state + '/images-src.raw'
    with open(img, 'wb') as f:
        f.write(b'nodeyard fake image\n'.ljust(65536, b'\0'))
    usr.create_image('nodeyard-fake', filename=img, disk_format='raw', container_format='bare',
                     wait=True, visibility='private')
    os.unlink(img)
retry('nova', lambda: list(adm.compute.flavors()))
for name, vcpus, ram, disk in (('small', 1, 1024, 10), ('medium', 2, 4096, 20), ('toobig', 4096, 1024, 1)):
    if not adm.compute.find_flavor(name):
        adm.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
retry('neutron', lambda: list(usr.network.networks()))
if not adm.network.find_network('public'):
    n = adm.network.create_network(name='public', is_router_external=True,
                                   provider_network_type='flat', provider_physical_network='ext')
    adm.network.create_subnet(network_id=n.id, name='public', ip_version=4, cidr='198.51.100.0/24',
                              is_dhcp_enabled=False)
net = usr.network.find_network('nodeyard') or usr.network.create_network(name='nodeyard')
sub = usr.network.find_subnet('nodeyard') or usr.network.create_subnet(
    network_id=net.id, name='nodeyard', ip_version=4, cidr='10.20.0.0/20', is_dhcp_enabled=False)
# for guests that never answer
silent = usr.network.find_network('nowhere') or usr.network.create_network(name='nowhere')
usr.network.find_subnet('nowhere') or usr.network.create_subnet(
    network_id=silent.id, name='nowhere', ip_version=4, cidr='10.21.0.0/24', is_dhcp_enabled=False)
if not usr.network.find_router('nodeyard'):
    r = usr.network.create_router(name='nodeyard', external_gateway_info={
        'network_id': adm.network.find_network('public').id})
    usr.network.add_interface_to_router(r, subnet_id=sub.id)
if not usr.compute.find_keypair('nodeyard'):
    key = state + '/id_ed25519'
    if not os.path.exists(key):
        subprocess.check_call(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'nodeyard', '-f', key])
    with open(key + '.pub') as f:
        usr.compute.create_keypair(name='nodeyard', public_key=f.read().strip())
# a compute node must be up, and its inventory in placement


def compute_up():   # a heartbeat of this very process: the database still calls a killed one "up" for a minute
    started = os.path.getmtime(state + '/run/nova-compute.pid')
    for s in adm.compute.services():
        if s.binary == 'nova-compute' and s.state == 'up' and (
                not s.updated_at or calendar.timegm(time.strptime(s.updated_at[:19], '%Y-%m-%dT%H:%M:%S')) >= int(started)):
            return
    raise RuntimeError('no heartbeat')


retry('nova-compute', compute_up)
retry('inventory', lambda: 1 / len(adm.placement.get('/resource_providers').json()['resource_providers']))
retry('cinder-volume', lambda: 1 / len(adm.block_storage.get('/scheduler-stats/get_pools').json()['pools']))
