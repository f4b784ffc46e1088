# Sourced by up.sh: what each service reads, written anew each time.
[ -s "$S/etc/admin-password" ] || "$PY" -S -c 'import secrets;print(secrets.token_hex(12))' > "$S/etc/admin-password"
chmod 600 "$S/etc/admin-password"
ADMIN_PW=$(cat "$S/etc/admin-password")
KS=http://127.0.0.1:$P_KEYSTONE/v3
DB=mysql+pymysql://root@127.0.0.1:$P_MYSQL
HOSTS="nodeyard-cmp1 nodeyard-cmp2"   # one in each availability zone

auth() { cat <<E
auth_url = $KS
auth_type = password
username = services
password = $ADMIN_PW
project_name = services
user_domain_name = Default
project_domain_name = Default
region_name = RegionOne
E
}
authtoken() { printf '[keystone_authtoken]\n'; auth
  printf 'www_authenticate_uri = %s\nmemcached_servers =\nservice_token_roles_required = true\n' "$KS"; }
database() { printf 'connection = %s/%s?charset=utf8\nmax_pool_size = 10\nmax_overflow = 40\nconnection_recycle_time = 3600\n' "$DB" "$1"; }

cat > "$S/etc/keystone.conf" <<E
[DEFAULT]
use_stderr = true
[database]
$(database keystone)
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = $S/etc/fernet
[fernet_receipts]
key_repository = $S/etc/fernet
[credential]
key_repository = $S/etc/fernet
[identity]
password_hash_rounds = 4
max_password_length = 54
[cache]
enabled = true
backend = dogpile.cache.memory
expiration_time = 60
[oslo_middleware]
enable_proxy_headers_parsing = false
E

cat > "$S/etc/placement.conf" <<E
[DEFAULT]
use_stderr = true
[placement_database]
$(database placement)
[api]
auth_strategy = keystone
$(authtoken)
E

cat > "$S/etc/glance.conf" <<E
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
bind_port = $P_GLANCE
workers = 0
public_endpoint = http://127.0.0.1:$P_GLANCE
node_staging_uri = file://$S/images/staging
enabled_backends = file:file
[database]
$(database glance)
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = $S/images
[os_glance_tasks_store]
filesystem_store_datadir = $S/images/tasks
[os_glance_staging_store]
filesystem_store_datadir = $S/images/staging
[paste_deploy]
flavor = keystone
config_file = $PLANE/paste/glance.ini
[oslo_concurrency]
lock_path = $S/lock
$(authtoken)
E
mkdir -p "$S/images/staging" "$S/images/tasks"

cat > "$S/etc/neutron.conf" <<E
[DEFAULT]
use_stderr = true
bind_host = 127.0.0.1
bind_port = $P_NEUTRON
core_plugin = ml2
service_plugins = router
transport_url = fake://
api_workers = 0
rpc_workers = 0
rpc_state_report_workers = 0
api_paste_config = $PLANE/paste/neutron.ini
state_path = $S/neutron
dhcp_agent_notification = false
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = true
send_events_interval = 1
# so few that lists have several pages
pagination_max_limit = 15
[database]
$(database neutron)
[oslo_concurrency]
lock_path = $S/lock
[nova]
$(auth)
[ml2]
type_drivers = flat,local
tenant_network_types = local
mechanism_drivers = nodeyard
extension_drivers = port_security
[ml2_type_flat]
flat_networks = *
[quotas]
default_quota = -1
$(authtoken)
E
mkdir -p "$S/neutron"

cat > "$S/etc/nova.conf" <<E
[DEFAULT]
use_stderr = true
my_ip = 127.0.0.1
state_path = $S/nova
instances_path = $S/nova/instances
transport_url = rabbit://guest:guest@127.0.0.1:$P_AMQP/
compute_driver = nodeyard.Driver
enabled_apis = osapi_compute
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = $P_NOVA
osapi_compute_workers = 1
reserved_host_memory_mb = 0
reserved_host_disk_mb = 0
cpu_allocation_ratio = 1.0
ram_allocation_ratio = 1.0
disk_allocation_ratio = 1.0
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
allow_resize_to_same_host = true
max_concurrent_builds = 50
graceful_shutdown_timeout = 1
sync_power_state_interval = -1
heal_instance_info_cache_interval = -1
reclaim_instance_interval = 0
[api]
auth_strategy = keystone
[wsgi]
api_paste_config = $PLANE/paste/nova.ini
[api_database]
$(database nova_api)
[database]
$(database nova)
[oslo_concurrency]
lock_path = $S/lock
[conductor]
workers = 1
[scheduler]
workers = 1
[quota]
instances = 20
cores = 200
ram = 409600
[vnc]
enabled = false
[glance]
endpoint_override = http://127.0.0.1:$P_GLANCE
[placement]
$(auth)
[neutron]
$(auth)
[service_user]
send_service_user_token = true
$(auth)
$(authtoken)
E
for h in $HOSTS; do printf '[DEFAULT]\nhost = %s\n' "$h" > "$S/etc/nova-$h.conf"; done

cat > "$S/etc/cinder.conf" <<E
[DEFAULT]
use_stderr = true
host = nodeyard-vol1
my_ip = 127.0.0.1
state_path = $S/cinder
transport_url = rabbit://guest:guest@127.0.0.1:$P_AMQP/
auth_strategy = keystone
osapi_volume_listen = 127.0.0.1
osapi_volume_listen_port = $P_CINDER
osapi_volume_workers = 1
api_paste_config = $PLANE/paste/cinder.ini
enabled_backends = nodeyard
glance_api_servers = http://127.0.0.1:$P_GLANCE
quota_volumes = 40
quota_gigabytes = 4000
backend_stats_polling_interval = 3
graceful_shutdown_timeout = 1
[nodeyard]
volume_driver = nodeyard_volume.Driver
volume_backend_name = nodeyard
[database]
$(database cinder)
[oslo_concurrency]
lock_path = $S/lock
[coordination]
backend_url = file://$S/cinder/coordination
[service_user]
send_service_user_token = true
$(auth)
$(authtoken)
E
mkdir -p "$S/cinder/coordination"
