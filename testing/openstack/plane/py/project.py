"""project.py STATE NAME [ROLE]: a project with a user of its name, networks and a key, and $STATE/projects/NAME.yaml to use it;
each step looks before it makes. ROLE: "member" (the default), or "admin" for one who sees what others have."""
import os
import secrets
import subprocess
import sys
import openstack
import yaml

state, name, role = (sys.argv[1:] + ['member'])[:3]
os.environ['OS_CLIENT_CONFIG_FILE'] = state + '/clouds.yaml'
adm = openstack.connect(cloud='admin')
file = '%s/projects/%s.yaml' % (state, name)


def write(path, content):
    with os.fdopen(os.open(path + '.new', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w') as f:
        yaml.safe_dump(content, f)
    os.rename(path + '.new', path)


with open(state + '/clouds.yaml') as f:
    clouds = yaml.safe_load(f)['clouds']
if not os.path.exists(file):
    password = secrets.token_hex(12)
    project = adm.identity.find_project(name) or adm.identity.create_project(name=name, domain_id='default')
    user = adm.identity.find_user(name)
    if user:
        adm.identity.update_user(user, password=password)
    else:
        user = adm.identity.create_user(name=name, domain_id='default', password=password, default_project_id=project.id)
    adm.identity.assign_project_role_to_user(project, user, adm.identity.find_role(role))
    own = {'region_name': 'RegionOne', 'auth': {**clouds['admin']['auth'], 'username': name, 'project_name': name, 'password': password}}
    write(file, {'clouds': {'nodeyard': own, 'admin': clouds['admin']}})
os.environ['OS_CLIENT_CONFIG_FILE'] = file
usr = openstack.connect(cloud='nodeyard')
here = usr.current_project_id


def find(kind, **query):   # an administrator sees others' things of the same name
    return next(iter(getattr(usr.network, kind)(project_id=here, **query)), None)


net = find('networks', name='nodeyard') or usr.network.create_network(name='nodeyard')
sub = find('subnets', name='nodeyard') or usr.network.create_subnet(
    network_id=net.id, name='nodeyard', ip_version=4, cidr='10.20.0.0/20', is_dhcp_enabled=False)
# for guests that never answer
silent = find('networks', name='nowhere') or usr.network.create_network(name='nowhere')
find('subnets', name='nowhere') or usr.network.create_subnet(
    network_id=silent.id, name='nowhere', ip_version=4, cidr='10.21.0.0/24', is_dhcp_enabled=False)
if not find('routers', name='nodeyard'):
    r = usr.network.create_router(name='nodeyard', external_gateway_info={
        'network_id': adm.network.find_network('public').id})
    usr.network.add_interface_to_router(r, subnet_id=sub.id)
if not usr.compute.find_keypair('nodeyard'):
    key = '%s/projects/%s.key' % (state, name)
    if not os.path.exists(key):
        subprocess.check_call(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', key])
    with open(key + '.pub') as f:
        usr.compute.create_keypair(name='nodeyard', public_key=f.read().strip())
print(here)
