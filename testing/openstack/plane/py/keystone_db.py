"""keystone-manage db_sync and bootstrap, then catalogue and service account."""
import sys
import uuid
conf, admin_pw, base = sys.argv[1:]
base = int(base)
import keystone.conf
from keystone import exception
from keystone.cmd import bootstrap
from keystone.common import provider_api, sql
from keystone.common.sql import upgrades
keystone.conf.configure()
sql.initialize()
keystone.conf.CONF(args=['--config-file', conf], project='keystone')
upgrades.offline_sync_database_to_version(None)
b = bootstrap.Bootstrapper()
b.admin_username = b.project_name = b.admin_role_name = 'admin'
b.admin_password = admin_pw
b.region_id, b.service_name = 'RegionOne', 'keystone'
b.public_url = b.internal_url = b.admin_url = 'http://127.0.0.1:%d/v3' % base
b.bootstrap()
api = provider_api.ProviderAPIs
have = {s['type']: s for s in api.catalog_api.list_services()}
for name, typ, off, path in (('nova', 'compute', 3, '/v2.1'), ('glance', 'image', 1, ''),
                             ('placement', 'placement', 2, ''), ('neutron', 'network', 4, ''),
                             ('cinderv3', 'volumev3', 9, '/v3/%(project_id)s')):
    if typ in have:
        continue
    sid = uuid.uuid4().hex
    api.catalog_api.create_service(sid, {'id': sid, 'name': name, 'type': typ, 'enabled': True})
    for i in 'public', 'internal', 'admin':
        eid = uuid.uuid4().hex
        api.catalog_api.create_endpoint(eid, {
            'id': eid, 'interface': i, 'service_id': sid, 'region_id': 'RegionOne', 'enabled': True,
            'url': 'http://127.0.0.1:%d%s' % (base + off, path)})
try:
    api.role_api.create_role('service', {'id': 'service', 'name': 'service'})
except exception.Conflict:
    pass


def account(name, password, roles):
    try:
        pid = api.resource_api.get_project_by_name(name, 'default')['id']
    except exception.ProjectNotFound:
        pid = uuid.uuid4().hex
        api.resource_api.create_project(pid, {'id': pid, 'name': name, 'domain_id': 'default', 'enabled': True})
    try:
        u = api.identity_api.get_user_by_name(name, 'default')
    except exception.UserNotFound:
        u = api.identity_api.create_user({'name': name, 'password': password, 'domain_id': 'default',
                                          'default_project_id': pid, 'enabled': True})
    for role in roles:
        try:
            api.assignment_api.add_role_to_user_and_project(u['id'], pid, role)
        except exception.Conflict:
            pass


account('services', admin_pw, [b.admin_role_id, 'service'])
