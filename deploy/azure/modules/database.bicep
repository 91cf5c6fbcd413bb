// PostgreSQL with PostGIS, which lets in identities and nobody with a password.
param name string
param location string
param subnetId string
param zoneId string
param administratorId string
param administratorName string

resource server 'Microsoft.DBforPostgreSQL/flexibleServers@2024-08-01' = {
  name: '${name}-database'
  location: location
  sku: {
    name: 'Standard_D4ds_v5'
    tier: 'GeneralPurpose'
  }
  properties: {
    version: '16'
    storage: {
      storageSizeGB: 256
      autoGrow: 'Enabled'
    }
    backup: {
      backupRetentionDays: 14
      geoRedundantBackup: 'Disabled'
    }
    highAvailability: {
      mode: 'ZoneRedundant'
    }
    network: {
      delegatedSubnetResourceId: subnetId
      privateDnsZoneArmResourceId: zoneId
    }
    authConfig: {
      activeDirectoryAuth: 'Enabled'
      passwordAuth: 'Disabled'
      tenantId: subscription().tenantId
    }
  }
}

resource administrator 'Microsoft.DBforPostgreSQL/flexibleServers/administrators@2024-08-01' = {
  parent: server
  name: administratorId
  properties: {
    principalType: 'Group'
    principalName: administratorName
    tenantId: subscription().tenantId
  }
}

resource extensions 'Microsoft.DBforPostgreSQL/flexibleServers/configurations@2024-08-01' = {
  parent: server
  name: 'azure.extensions'
  properties: {
    source: 'user-override'
    value: 'POSTGIS,PG_TRGM,BTREE_GIST,UNACCENT'
  }
  dependsOn: [
    administrator
  ]
}

resource connections 'Microsoft.DBforPostgreSQL/flexibleServers/configurations@2024-08-01' = {
  parent: server
  name: 'max_connections'
  properties: {
    source: 'user-override'
    value: '400'
  }
  dependsOn: [
    extensions
  ]
}

output host string = server.properties.fullyQualifiedDomainName
