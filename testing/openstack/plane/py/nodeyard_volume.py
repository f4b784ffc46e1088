"""A cinder back end of volumes that hold nothing, as the fake hypervisor reads none."""
from cinder import interface
from cinder.volume import driver


@interface.volumedriver
class Driver(driver.VolumeDriver):
    VERSION = '1'

    def do_setup(self, context):
        pass

    def check_for_setup_error(self):
        pass

    def _update_volume_stats(self):
        self._stats = {'volume_backend_name': 'nodeyard', 'vendor_name': 'nodeyard', 'driver_version': '1',
                       'storage_protocol': 'nodeyard', 'total_capacity_gb': 10000, 'free_capacity_gb': 10000}

    def create_volume(self, volume):
        return {}

    def delete_volume(self, volume):
        pass

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        return {}, True

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        return {}

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector, **kwargs):
        return {'driver_volume_type': 'nodeyard', 'data': {}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass
